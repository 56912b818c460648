//! Retry policies with a name, as the catalogue has them.

use kagzi_catalogue::{PRESETS, Preset};

use crate::{Millis, RetryPolicy};

impl RetryPolicy {
    /// The policy that has this name, if one has.
    pub fn preset(name: &str) -> Option<RetryPolicy> {
        Preset::from_name(name).map(policy)
    }

    /// The names of all presets.
    pub fn preset_names() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|preset| preset.name)
    }
}

fn policy(preset: &Preset) -> RetryPolicy {
    let millis = |ms: u64| Millis::try_from(ms).unwrap_or(Millis::MAX);
    RetryPolicy {
        maximum_attempts: Some(preset.executions),
        backoff: preset.backoff,
        initial_interval_ms: preset.intervals_ms.map(|(first, _)| millis(first)),
        maximum_interval_ms: preset.intervals_ms.map(|(_, longest)| millis(longest)),
        backoff_coefficient: preset.coefficient,
        jitter: preset.jitter,
        retry_timeout_ms: preset.within_ms.map(millis),
        ..RetryPolicy::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_a_sound_policy_that_its_name_finds() {
        for name in RetryPolicy::preset_names() {
            let policy = RetryPolicy::preset(name).expect("a preset has its own name");
            assert_eq!(policy.check(), Ok(()), "{name}");
        }
        assert_eq!(RetryPolicy::preset("quick"), None);
    }
}
