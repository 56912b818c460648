//! How failures are retried, as users say it. Unset means inherited, so merging never loses a field.

use std::time::Duration;

use kagzi_catalogue::{PRESETS, Preset, presets};
use kagzi_proto::v1;

pub use kagzi_catalogue::Backoff;

/// How failures are retried. A field that is not set is inherited: step, then workflow, then
/// namespace, then server.
///
/// ```
/// use kagzi::workflow::{Backoff, RetryPolicy};
/// use std::time::Duration;
///
/// let policy = RetryPolicy { initial_interval: Some(Duration::from_millis(200)), ..Default::default() };
/// assert_eq!(policy, RetryPolicy::default().initial_interval(Duration::from_millis(200)));
///
/// let patient = RetryPolicy::RATE_LIMITED.maximum_attempts(20).non_retryable_errors(["CARD_DECLINED"]);
/// assert_eq!(patient.backoff, Some(Backoff::ExponentialJitter));
/// ```
///
/// ```no_run
/// use std::time::Duration;
/// use kagzi::RetryPolicy;
/// use kagzi::workflow::Backoff;
///
/// let policy = RetryPolicy::default()
///     .maximum_attempts(8)
///     .initial_interval(Duration::from_millis(200))
///     .backoff(Backoff::Exponential)
///     .backoff_coefficient(3.0)
///     .maximum_interval(Duration::from_secs(60))
///     .jitter(0.25)
///     .retry_timeout(Duration::from_secs(600))
///     .run_retries_max(50)
///     .run_retry_budget(Duration::from_secs(3600))
///     .retryable_errors(["BUSY"])
///     .non_retryable_errors(["CARD_DECLINED"]);
/// assert_ne!(Some(policy), RetryPolicy::preset("STANDARD"));
/// let by_hand = RetryPolicy::default().schedule([1, 5, 30].map(Duration::from_secs));
/// # drop(by_hand);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RetryPolicy {
    /// Executions in total, the first included; -1 = no limit.
    pub maximum_attempts: Option<i32>,
    /// Delay after the first failure.
    pub initial_interval: Option<Duration>,
    /// Each further delay is this many times the one before.
    pub backoff_coefficient: Option<f64>,
    /// No delay is longer.
    pub maximum_interval: Option<Duration>,
    /// Error codes that are final at once. Empty means inherited. Asked before `retryable_errors`.
    pub non_retryable_errors: Vec<String>,
    /// Error codes that are retried; where there are any, nothing else is. Empty means inherited.
    pub retryable_errors: Vec<String>,
    /// The shape of the delays.
    pub backoff: Option<Backoff>,
    /// How far a jittered delay may stray, as a part of it: 0.3 is 70 % to 130 %.
    pub jitter: Option<f64>,
    /// The delays of [`Backoff::Custom`]; after the last one, `maximum_interval`.
    pub schedule: Vec<Duration>,
    /// No attempt begins later than this after the first.
    pub retry_timeout: Option<Duration>,
    /// Retries of all steps of a run together; -1 = no limit.
    pub run_retries_max: Option<i32>,
    /// Waiting for retries of all steps of a run together; `Duration::MAX` = no limit.
    pub run_retry_budget: Option<Duration>,
}

impl RetryPolicy {
    /// What must not fail: 10 executions within 5 minutes, 100 ms to 30 s apart, with jitter.
    pub const CRITICAL: RetryPolicy = policy(&presets::CRITICAL);

    /// 5 executions within 2 minutes, 1 s to 30 s apart.
    pub const STANDARD: RetryPolicy = policy(&presets::STANDARD);

    /// 3 executions within 30 seconds, half a second apart.
    pub const QUICK: RetryPolicy = policy(&presets::QUICK);

    /// For receivers that say "slow down": 10 executions within 15 minutes, 5 s to 2 min apart, with jitter.
    pub const RATE_LIMITED: RetryPolicy = policy(&presets::RATE_LIMITED);

    /// 3 executions within 10 seconds, one right after the other.
    pub const IMMEDIATE: RetryPolicy = policy(&presets::IMMEDIATE);

    /// One execution.
    pub const NONE: RetryPolicy = policy(&presets::NONE);

    /// The names of all presets.
    pub const PRESETS: [&str; PRESETS.len()] = {
        let mut names = [""; PRESETS.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = PRESETS[at].name;
            at += 1;
        }
        names
    };

    /// The preset of this name.
    pub fn preset(name: &str) -> Option<RetryPolicy> {
        Preset::from_name(name).map(policy)
    }

    /// Executions in total, the first included; -1 = no limit.
    pub fn maximum_attempts(mut self, executions: i32) -> Self {
        self.maximum_attempts = Some(executions);
        self
    }

    /// Delay after the first failure.
    pub fn initial_interval(mut self, delay: Duration) -> Self {
        self.initial_interval = Some(delay);
        self
    }

    /// Each further delay is this many times the one before.
    pub fn backoff_coefficient(mut self, times: f64) -> Self {
        self.backoff_coefficient = Some(times);
        self
    }

    /// No delay is longer.
    pub fn maximum_interval(mut self, delay: Duration) -> Self {
        self.maximum_interval = Some(delay);
        self
    }

    /// Error codes that are final at once.
    pub fn non_retryable_errors<C: Into<String>>(mut self, codes: impl IntoIterator<Item = C>) -> Self {
        self.non_retryable_errors = codes.into_iter().map(Into::into).collect();
        self
    }

    /// Error codes that are retried, and no others.
    pub fn retryable_errors<C: Into<String>>(mut self, codes: impl IntoIterator<Item = C>) -> Self {
        self.retryable_errors = codes.into_iter().map(Into::into).collect();
        self
    }

    /// The shape of the delays.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// How far a jittered delay may stray, as a part of it.
    pub fn jitter(mut self, half_width: f64) -> Self {
        self.jitter = Some(half_width);
        self
    }

    /// A backoff with exactly these delays, and `maximum_interval` after the last.
    pub fn schedule(mut self, delays: impl IntoIterator<Item = Duration>) -> Self {
        self.schedule = delays.into_iter().collect();
        self.backoff(Backoff::Custom)
    }

    /// No attempt begins later than this after the first.
    pub fn retry_timeout(mut self, timeout: Duration) -> Self {
        self.retry_timeout = Some(timeout);
        self
    }

    /// Retries of all steps of a run together; -1 = no limit.
    pub fn run_retries_max(mut self, retries: i32) -> Self {
        self.run_retries_max = Some(retries);
        self
    }

    /// Waiting for retries of all steps of a run together; `Duration::MAX` = no limit.
    pub fn run_retry_budget(mut self, budget: Duration) -> Self {
        self.run_retry_budget = Some(budget);
        self
    }

    /// Takes over what `other` sets and keeps the rest. Replacing the whole policy instead would make
    /// the order of builder calls matter: `.retries(10).retry_policy(..)` once lost the 10.
    pub(crate) fn merge(&mut self, other: RetryPolicy) {
        self.maximum_attempts = other.maximum_attempts.or(self.maximum_attempts);
        self.initial_interval = other.initial_interval.or(self.initial_interval);
        self.backoff_coefficient = other.backoff_coefficient.or(self.backoff_coefficient);
        self.maximum_interval = other.maximum_interval.or(self.maximum_interval);
        if !other.non_retryable_errors.is_empty() {
            self.non_retryable_errors = other.non_retryable_errors;
        }
        if !other.retryable_errors.is_empty() {
            self.retryable_errors = other.retryable_errors;
        }
        self.backoff = other.backoff.or(self.backoff);
        self.jitter = other.jitter.or(self.jitter);
        if !other.schedule.is_empty() {
            self.schedule = other.schedule;
        }
        self.retry_timeout = other.retry_timeout.or(self.retry_timeout);
        self.run_retries_max = other.run_retries_max.or(self.run_retries_max);
        self.run_retry_budget = other.run_retry_budget.or(self.run_retry_budget);
    }

    /// What makes no sense in it. The server would say so when the step first fails, and fail the run for it.
    pub(crate) fn check(&self) -> Result<(), String> {
        let wrong =
            |field: &str, value: String, rule: &str| Err(format!("retry policy: {field} is {value}: {rule}"));
        if let Some(attempts) = self.maximum_attempts
            && (attempts == 0 || attempts < -1)
        {
            let rule =
                "it counts executions, the first included, so it must be 1 or more, or -1 for no limit";
            return wrong("maximum_attempts", attempts.to_string(), rule);
        }
        if let Some(times) = self.backoff_coefficient
            && !(1.0..=1000.0).contains(&times)
        {
            return wrong("backoff_coefficient", times.to_string(), "it must be between 1 and 1000");
        }
        if let Some(jitter) = self.jitter
            && !(0.0..=1.0).contains(&jitter)
        {
            return wrong("jitter", jitter.to_string(), "it must be between 0 and 1");
        }
        if let (Some(first), Some(longest)) = (self.initial_interval, self.maximum_interval)
            && first > longest
        {
            return wrong("initial_interval", format!("{first:?}"), "it must not exceed maximum_interval");
        }
        if self.backoff == Some(Backoff::Custom) && self.schedule.is_empty() {
            return wrong("schedule", "empty".to_owned(), "a custom backoff needs at least one delay");
        }
        Ok(())
    }

    /// None when nothing is set: the server then need not look.
    pub(crate) fn to_proto(&self) -> Option<v1::RetryPolicy> {
        (*self != RetryPolicy::default()).then(|| v1::RetryPolicy {
            maximum_attempts: self.maximum_attempts,
            initial_interval_ms: self.initial_interval.map(millis),
            backoff_coefficient: self.backoff_coefficient,
            maximum_interval_ms: self.maximum_interval.map(millis),
            non_retryable_errors: self.non_retryable_errors.clone(),
            retryable_errors: self.retryable_errors.clone(),
            backoff: self.backoff.map_or(0, |shape| shape.number().into()),
            jitter: self.jitter,
            schedule_ms: self.schedule.iter().copied().map(millis).collect(),
            retry_timeout_ms: self.retry_timeout.map(millis),
            run_retries_max: self.run_retries_max,
            run_retry_budget_ms: self.run_retry_budget.map(millis_or_no_limit),
            // Presets travel as their numbers, so that a run keeps the policy it was started with.
            preset: 0,
        })
    }
}

impl RetryPolicy {
    pub(crate) fn from_proto(policy: v1::RetryPolicy) -> RetryPolicy {
        let budget = |ms: i64| if ms < 0 { Duration::MAX } else { from_millis(ms) };
        RetryPolicy {
            backoff: u64::try_from(policy.backoff).ok().and_then(Backoff::from_number),
            maximum_attempts: policy.maximum_attempts,
            initial_interval: policy.initial_interval_ms.map(from_millis),
            backoff_coefficient: policy.backoff_coefficient,
            maximum_interval: policy.maximum_interval_ms.map(from_millis),
            non_retryable_errors: policy.non_retryable_errors,
            retryable_errors: policy.retryable_errors,
            jitter: policy.jitter,
            schedule: policy.schedule_ms.into_iter().map(from_millis).collect(),
            retry_timeout: policy.retry_timeout_ms.map(from_millis),
            run_retries_max: policy.run_retries_max,
            run_retry_budget: policy.run_retry_budget_ms.map(budget),
        }
    }
}

/// The policy behind a name.
const fn policy(preset: &Preset) -> RetryPolicy {
    const fn duration(ms: Option<u64>) -> Option<Duration> {
        match ms {
            Some(ms) => Some(Duration::from_millis(ms)),
            None => None,
        }
    }
    let (first, longest) = match preset.intervals_ms {
        Some((first, longest)) => (Some(first), Some(longest)),
        None => (None, None),
    };
    RetryPolicy {
        maximum_attempts: Some(preset.executions),
        initial_interval: duration(first),
        backoff_coefficient: preset.coefficient,
        maximum_interval: duration(longest),
        non_retryable_errors: Vec::new(),
        retryable_errors: Vec::new(),
        backoff: preset.backoff,
        jitter: preset.jitter,
        schedule: Vec::new(),
        retry_timeout: duration(preset.within_ms),
        run_retries_max: None,
        run_retry_budget: None,
    }
}

/// Milliseconds for the wire. Rounds up, so that a positive duration never becomes "none".
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

fn millis_or_no_limit(duration: Duration) -> i64 {
    if duration == Duration::MAX { -1 } else { millis(duration) }
}

/// A duration from the wire; what is negative is over.
pub(crate) fn from_millis(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every field set, each to something of its own.
    fn full() -> RetryPolicy {
        RetryPolicy::default()
            .maximum_attempts(7)
            .initial_interval(Duration::from_millis(1))
            .backoff_coefficient(1.5)
            .maximum_interval(Duration::from_millis(2))
            .non_retryable_errors(["DECLINED"])
            .retryable_errors(["BUSY"])
            .jitter(0.25)
            .schedule([Duration::from_millis(3), Duration::from_millis(4)])
            .retry_timeout(Duration::from_millis(5))
            .run_retries_max(8)
            .run_retry_budget(Duration::from_millis(6))
    }

    #[test]
    fn merging_keeps_what_the_other_does_not_set() {
        let attempts = RetryPolicy { maximum_attempts: Some(10), ..Default::default() };
        let interval = RetryPolicy { initial_interval: Some(Duration::from_secs(3)), ..Default::default() };

        let mut one_way = attempts.clone();
        one_way.merge(interval.clone());
        let mut other_way = interval;
        other_way.merge(attempts);

        assert_eq!(one_way, other_way);
        assert_eq!(one_way.maximum_attempts, Some(10));
        assert_eq!(one_way.initial_interval, Some(Duration::from_secs(3)));
    }

    #[test]
    fn merging_loses_no_field_and_takes_every_field() {
        let mut kept = full();
        kept.merge(RetryPolicy::default());
        let mut taken = RetryPolicy::CRITICAL;
        taken.merge(full());

        assert_eq!(kept, full());
        assert_eq!(taken, full());
    }

    #[test]
    fn every_field_reaches_the_wire() {
        let sent = full().to_proto().unwrap();

        let expected = v1::RetryPolicy {
            maximum_attempts: Some(7),
            initial_interval_ms: Some(1),
            backoff_coefficient: Some(1.5),
            maximum_interval_ms: Some(2),
            non_retryable_errors: vec!["DECLINED".into()],
            retryable_errors: vec!["BUSY".into()],
            backoff: v1::Backoff::Custom.into(),
            jitter: Some(0.25),
            schedule_ms: vec![3, 4],
            retry_timeout_ms: Some(5),
            run_retries_max: Some(8),
            run_retry_budget_ms: Some(6),
            preset: 0,
        };
        assert_eq!(sent, expected);
        assert_eq!(RetryPolicy::from_proto(sent), full(), "and comes back from it");
    }

    #[test]
    fn presets_are_sent_as_the_documented_numbers() {
        let numbers = |policy: RetryPolicy| {
            let sent = policy.to_proto().unwrap();
            let intervals = (sent.initial_interval_ms, sent.maximum_interval_ms);
            (sent.maximum_attempts, sent.backoff(), intervals, sent.jitter, sent.retry_timeout_ms)
        };
        let jittered = v1::Backoff::ExponentialJitter;
        let (exponential, fixed) = (v1::Backoff::Exponential, v1::Backoff::Fixed);

        let critical = (Some(10), jittered, (Some(100), Some(30_000)), Some(0.3), Some(300_000));
        assert_eq!(numbers(RetryPolicy::CRITICAL), critical);
        let standard = (Some(5), exponential, (Some(1_000), Some(30_000)), None, Some(120_000));
        assert_eq!(numbers(RetryPolicy::STANDARD), standard);
        let quick = (Some(3), fixed, (Some(500), Some(500)), None, Some(30_000));
        assert_eq!(numbers(RetryPolicy::QUICK), quick);
        let rate_limited = (Some(10), jittered, (Some(5_000), Some(120_000)), Some(0.5), Some(900_000));
        assert_eq!(numbers(RetryPolicy::RATE_LIMITED), rate_limited);
        let immediate = (Some(3), fixed, (Some(0), Some(0)), None, Some(10_000));
        assert_eq!(numbers(RetryPolicy::IMMEDIATE), immediate);
        let none = (Some(1), v1::Backoff::Unspecified, (None, None), None, None);
        assert_eq!(numbers(RetryPolicy::NONE), none);
    }

    #[test]
    fn an_empty_policy_is_not_sent() {
        assert_eq!(RetryPolicy::default().to_proto(), None);
    }

    #[test]
    fn a_budget_without_end_is_minus_one() {
        let sent = RetryPolicy::default().run_retry_budget(Duration::MAX).to_proto().unwrap();

        assert_eq!(sent.run_retry_budget_ms, Some(-1));
    }

    #[test]
    fn durations_round_up_and_saturate() {
        assert_eq!(millis(Duration::from_micros(1)), 1);
        assert_eq!(millis(Duration::ZERO), 0);
        assert_eq!(millis(Duration::MAX), i64::MAX);
        assert_eq!(from_millis(-5), Duration::ZERO);
    }
}
