//! How failures are retried, as users say it. Unset means inherited, so merging never loses a field.

use std::time::Duration;

use kagzi_proto::v1;

/// How failures are retried. A field that is not set is inherited: step, then workflow, then
/// namespace, then server.
///
/// ```
/// use kagzi::RetryPolicy;
/// use std::time::Duration;
///
/// let policy = RetryPolicy { initial_interval: Some(Duration::from_millis(200)), ..Default::default() };
/// # assert_eq!(policy.maximum_attempts, None);
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
    /// Error codes that are final at once. Empty means inherited.
    pub non_retryable_errors: Vec<String>,
}

impl RetryPolicy {
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
    }

    /// None when nothing is set: the server then need not look.
    pub(crate) fn to_proto(&self) -> Option<v1::RetryPolicy> {
        (*self != RetryPolicy::default()).then(|| v1::RetryPolicy {
            maximum_attempts: self.maximum_attempts,
            initial_interval_ms: self.initial_interval.map(millis),
            backoff_coefficient: self.backoff_coefficient,
            maximum_interval_ms: self.maximum_interval.map(millis),
            non_retryable_errors: self.non_retryable_errors.clone(),
        })
    }
}

/// Milliseconds for the wire. Rounds up, so that a positive duration never becomes "none".
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// A duration from the wire; what is negative is over.
pub(crate) fn from_millis(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn an_empty_policy_is_not_sent() {
        assert_eq!(RetryPolicy::default().to_proto(), None);
    }

    #[test]
    fn durations_round_up_and_saturate() {
        assert_eq!(millis(Duration::from_micros(1)), 1);
        assert_eq!(millis(Duration::ZERO), 0);
        assert_eq!(millis(Duration::MAX), i64::MAX);
        assert_eq!(from_millis(-5), Duration::ZERO);
    }
}
