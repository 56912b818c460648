//! Retry policies with a name, for those who do not want to choose numbers.

use crate::{Backoff, RetryPolicy};

/// A ready-made policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// Must succeed if it can: 10 executions within 5 minutes, jittered, 100 ms to 30 s apart.
    Critical,
    /// 5 executions within 2 minutes, 1 s to 30 s apart.
    Standard,
    /// 3 executions, half a second apart.
    Quick,
    /// For receivers that say "slow down": 10 executions within 15 minutes, 5 s to 2 min apart.
    RateLimited,
    /// 3 executions at once.
    Immediate,
    /// One execution.
    None,
}

impl Preset {
    /// All of them, with the names that users write.
    pub const ALL: [(&'static str, Preset); 6] = [
        ("CRITICAL", Preset::Critical),
        ("STANDARD", Preset::Standard),
        ("QUICK", Preset::Quick),
        ("RATE_LIMITED", Preset::RateLimited),
        ("IMMEDIATE", Preset::Immediate),
        ("NONE", Preset::None),
    ];

    /// The preset with this name.
    pub fn from_name(name: &str) -> Option<Preset> {
        Preset::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, preset)| preset)
    }

    /// The numbers behind the name.
    pub fn policy(self) -> RetryPolicy {
        let policy = |attempts, backoff, (initial, maximum), timeout| RetryPolicy {
            maximum_attempts: Some(attempts),
            backoff: Some(backoff),
            initial_interval_ms: Some(initial),
            maximum_interval_ms: Some(maximum),
            backoff_coefficient: Some(2.0),
            retry_timeout_ms: Some(timeout),
            ..RetryPolicy::default()
        };
        let jittered = |jitter, policy| RetryPolicy { jitter: Some(jitter), ..policy };
        match self {
            Preset::Critical => {
                jittered(0.3, policy(10, Backoff::ExponentialJitter, (100, 30_000), 5 * 60_000))
            }
            Preset::Standard => policy(5, Backoff::Exponential, (1_000, 30_000), 2 * 60_000),
            Preset::Quick => policy(3, Backoff::Fixed, (500, 500), 30_000),
            Preset::RateLimited => {
                jittered(0.5, policy(10, Backoff::ExponentialJitter, (5_000, 120_000), 15 * 60_000))
            }
            Preset::Immediate => policy(3, Backoff::Fixed, (0, 0), 10_000),
            Preset::None => RetryPolicy { maximum_attempts: Some(1), ..RetryPolicy::default() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_a_sound_policy_that_its_name_finds() {
        for (name, preset) in Preset::ALL {
            assert_eq!(preset.policy().check(), Ok(()), "{name}");
            assert_eq!(Preset::from_name(name), Some(preset));
        }
        assert_eq!(Preset::from_name("quick"), None);
    }
}
