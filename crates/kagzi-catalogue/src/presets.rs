//! Retry policies with a name, for those who do not want to choose numbers.

use crate::Backoff;

/// The numbers behind a name. What is not set is inherited, as in every policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Preset {
    pub name: &'static str,
    /// Executions in total, the first included.
    pub executions: i32,
    pub backoff: Option<Backoff>,
    /// The first interval and the longest.
    pub intervals_ms: Option<(u64, u64)>,
    pub coefficient: Option<f64>,
    pub jitter: Option<f64>,
    /// No attempt begins later than this after the first.
    pub within_ms: Option<u64>,
}

const UNSET: Preset = Preset {
    name: "",
    executions: 1,
    backoff: None,
    intervals_ms: None,
    coefficient: None,
    jitter: None,
    within_ms: None,
};

/// Declares the presets: a constant each, and the list of all.
macro_rules! presets {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $value:expr),* $(,)? })+) => {
        $($(#[$doc])*
        #[allow(clippy::needless_update, reason = "some presets set every field")]
        pub const $name: Preset =
            Preset { name: stringify!($name), $($field: $value,)* ..UNSET };)+

        /// Every preset, in the order of the documentation.
        pub const PRESETS: &[Preset] = &[$($name),+];
    };
}

presets! {
    /// What must not fail: 10 executions within 5 minutes, 100 ms to 30 s apart, with jitter.
    CRITICAL {
        executions: 10,
        backoff: Some(Backoff::ExponentialJitter),
        intervals_ms: Some((100, 30_000)),
        coefficient: Some(2.0),
        jitter: Some(0.3),
        within_ms: Some(5 * 60_000),
    }
    /// 5 executions within 2 minutes, 1 s to 30 s apart.
    STANDARD {
        executions: 5,
        backoff: Some(Backoff::Exponential),
        intervals_ms: Some((1_000, 30_000)),
        coefficient: Some(2.0),
        within_ms: Some(2 * 60_000),
    }
    /// 3 executions within 30 seconds, half a second apart.
    QUICK {
        executions: 3,
        backoff: Some(Backoff::Fixed),
        intervals_ms: Some((500, 500)),
        within_ms: Some(30_000),
    }
    /// For receivers that say "slow down": 10 executions within 15 minutes, 5 s to 2 min apart, with jitter.
    RATE_LIMITED {
        executions: 10,
        backoff: Some(Backoff::ExponentialJitter),
        intervals_ms: Some((5_000, 120_000)),
        coefficient: Some(2.0),
        jitter: Some(0.5),
        within_ms: Some(15 * 60_000),
    }
    /// 3 executions within 10 seconds, one right after the other.
    IMMEDIATE {
        executions: 3,
        backoff: Some(Backoff::Fixed),
        intervals_ms: Some((0, 0)),
        within_ms: Some(10_000),
    }
    /// One execution.
    NONE {}
}

impl Preset {
    /// The preset of this name.
    pub fn from_name(name: &str) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.name == name)
    }
}
