//! Retry policies: merging, checking, and the delay before the next attempt.

use serde::{Deserialize, Serialize};

use crate::{
    Failure, Millis,
    limits::{POLICY_CODES_MAX, WAIT_MS_MAX},
};

/// How failures are retried. Unset fields are inherited, field by field: step > workflow > namespace > server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Executions, the first included; -1 = no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum_attempts: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_interval_ms: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_coefficient: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum_interval_ms: Option<Millis>,
    /// Error codes that end the step at once; a prefix of the message matches too (the seeds' way).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub non_retryable_errors: Vec<String>,
}

/// What follows a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    RetryAfter { delay_ms: Millis },
    Final,
}

/// A policy that makes no sense, with the field and the rule.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{field} is {value}, {rule}")]
pub struct PolicyError {
    pub field: &'static str,
    pub value: String,
    pub rule: &'static str,
}

impl RetryPolicy {
    /// 5 executions, after 1 s, 2 s, 4 s, … at most 60 s apart.
    pub const MAXIMUM_ATTEMPTS: i32 = 5;
    pub const INITIAL_INTERVAL_MS: Millis = 1_000;
    pub const BACKOFF_COEFFICIENT: f64 = 2.0;
    pub const MAXIMUM_INTERVAL_MS: Millis = 60_000;

    /// This policy, with `outer` filling the fields it leaves open.
    pub fn or(&self, outer: &RetryPolicy) -> RetryPolicy {
        RetryPolicy {
            maximum_attempts: self.maximum_attempts.or(outer.maximum_attempts),
            initial_interval_ms: self.initial_interval_ms.or(outer.initial_interval_ms),
            backoff_coefficient: self.backoff_coefficient.or(outer.backoff_coefficient),
            maximum_interval_ms: self.maximum_interval_ms.or(outer.maximum_interval_ms),
            non_retryable_errors: if self.non_retryable_errors.is_empty() {
                outer.non_retryable_errors.clone()
            } else {
                self.non_retryable_errors.clone()
            },
        }
    }

    /// Refuses values that no delay can be computed from.
    pub fn check(&self) -> Result<(), PolicyError> {
        let wrong = |field, value: String, rule| Err(PolicyError { field, value, rule });
        if let Some(n) = self.maximum_attempts
            && (n == 0 || n < -1)
        {
            return wrong(
                "maximum_attempts",
                n.to_string(),
                "it counts executions: 1 or more, or -1 for no limit",
            );
        }
        for (field, interval) in [
            ("initial_interval_ms", self.initial_interval_ms),
            ("maximum_interval_ms", self.maximum_interval_ms),
        ] {
            if let Some(ms) = interval
                && !(0..=WAIT_MS_MAX).contains(&ms)
            {
                return wrong(field, ms.to_string(), "it must be between 0 and ten years");
            }
        }
        if let Some(c) = self.backoff_coefficient
            && !(1.0..=1000.0).contains(&c)
        {
            return wrong("backoff_coefficient", c.to_string(), "it must be between 1 and 1000");
        }
        if let (Some(first), Some(most)) = (self.initial_interval_ms, self.maximum_interval_ms)
            && first > most
        {
            return wrong("initial_interval_ms", first.to_string(), "it must not exceed maximum_interval_ms");
        }
        if self.non_retryable_errors.len() > POLICY_CODES_MAX {
            let count = self.non_retryable_errors.len();
            return wrong("non_retryable_errors", count.to_string(), "at most 100 codes are allowed");
        }
        Ok(())
    }

    /// What follows the `attempt`-th execution (counted from 1) having failed.
    pub fn verdict(&self, attempt: u32, failure: &Failure) -> Verdict {
        let limit = self.maximum_attempts.unwrap_or(Self::MAXIMUM_ATTEMPTS);
        let exhausted = limit >= 0 && attempt >= limit.unsigned_abs();
        if failure.non_retryable || exhausted || self.denies(failure) {
            return Verdict::Final;
        }
        let delay_ms = failure.retry_after_ms.unwrap_or_else(|| self.delay_ms(attempt));
        Verdict::RetryAfter { delay_ms: delay_ms.clamp(0, WAIT_MS_MAX) }
    }

    /// The delay after the n-th failed execution: initial × coefficient^(n-1), capped.
    pub fn delay_ms(&self, attempt: u32) -> Millis {
        let initial = self.initial_interval_ms.unwrap_or(Self::INITIAL_INTERVAL_MS);
        let coefficient = self.backoff_coefficient.unwrap_or(Self::BACKOFF_COEFFICIENT);
        // An explicit first interval above the default cap lifts the cap, or it could never be honoured.
        let cap = self.maximum_interval_ms.unwrap_or(Self::MAXIMUM_INTERVAL_MS.max(initial));
        let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let delay = initial as f64 * coefficient.powi(exponent);
        // `as` saturates, so an infinite product becomes the cap too.
        (delay as i64).min(cap)
    }

    fn denies(&self, failure: &Failure) -> bool {
        self.non_retryable_errors
            .iter()
            .any(|code| !code.is_empty() && (*code == *failure.code || failure.message.starts_with(code)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_delays_are_one_two_four_eight_seconds_up_to_a_minute() {
        let policy = RetryPolicy::default();

        let delays: Vec<_> = (1..=8).map(|n| policy.delay_ms(n)).collect();

        assert_eq!(delays, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    }

    #[test]
    fn the_delay_never_overflows() {
        assert_eq!(RetryPolicy::default().delay_ms(u32::MAX), 60_000);
    }

    #[test]
    fn maximum_attempts_counts_executions() {
        let policy = RetryPolicy { maximum_attempts: Some(2), ..Default::default() };
        let failure = Failure::new("X", "x");

        assert_eq!(policy.verdict(1, &failure), Verdict::RetryAfter { delay_ms: 1_000 });
        assert_eq!(policy.verdict(2, &failure), Verdict::Final);
    }

    #[test]
    fn minus_one_retries_without_end() {
        let policy = RetryPolicy { maximum_attempts: Some(-1), ..Default::default() };

        assert_eq!(
            policy.verdict(u32::MAX, &Failure::new("X", "x")),
            Verdict::RetryAfter { delay_ms: 60_000 }
        );
    }

    #[test]
    fn the_reporter_can_end_or_delay() {
        let policy = RetryPolicy::default();

        assert_eq!(policy.verdict(1, &Failure::new("X", "x").non_retryable()), Verdict::Final);
        let later = Failure::new("X", "x").retry_after(30_000);
        assert_eq!(policy.verdict(1, &later), Verdict::RetryAfter { delay_ms: 30_000 });
    }

    #[test]
    fn listed_codes_and_message_prefixes_are_final() {
        let policy = RetryPolicy {
            non_retryable_errors: vec!["DECLINED".into(), "invalid".into()],
            ..Default::default()
        };

        assert_eq!(policy.verdict(1, &Failure::new("DECLINED", "no money")), Verdict::Final);
        assert_eq!(policy.verdict(1, &Failure::new("", "invalid amount")), Verdict::Final);
        assert_eq!(
            policy.verdict(1, &Failure::new("", "an invalid")),
            Verdict::RetryAfter { delay_ms: 1_000 }
        );
    }

    #[test]
    fn policies_merge_field_by_field() {
        let step = RetryPolicy { initial_interval_ms: Some(5), ..Default::default() };
        let run =
            RetryPolicy { maximum_attempts: Some(10), initial_interval_ms: Some(7), ..Default::default() };

        let merged = step.or(&run);

        assert_eq!((merged.maximum_attempts, merged.initial_interval_ms), (Some(10), Some(5)));
    }

    #[test]
    fn nonsense_is_refused_with_its_field() {
        let with = |policy: RetryPolicy| policy.check().unwrap_err().field;
        let base = RetryPolicy::default;

        assert_eq!(with(RetryPolicy { maximum_attempts: Some(0), ..base() }), "maximum_attempts");
        assert_eq!(with(RetryPolicy { maximum_attempts: Some(-2), ..base() }), "maximum_attempts");
        assert_eq!(with(RetryPolicy { initial_interval_ms: Some(-1), ..base() }), "initial_interval_ms");
        assert_eq!(
            with(RetryPolicy { maximum_interval_ms: Some(i64::MAX), ..base() }),
            "maximum_interval_ms"
        );
        assert_eq!(
            with(RetryPolicy { backoff_coefficient: Some(f64::NAN), ..base() }),
            "backoff_coefficient"
        );
        assert_eq!(with(RetryPolicy { backoff_coefficient: Some(0.5), ..base() }), "backoff_coefficient");
        let crossed = RetryPolicy { initial_interval_ms: Some(9), maximum_interval_ms: Some(8), ..base() };
        assert_eq!(with(crossed), "initial_interval_ms");
    }
}
