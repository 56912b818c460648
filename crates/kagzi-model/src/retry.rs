//! Retry policies: merging, checking, and what follows a failed attempt.

use serde::{Deserialize, Serialize};

use crate::{
    Backoff, Failure, Millis,
    backoff::Delay,
    limits::{POLICY_CODES_MAX, SCHEDULE_LEN_MAX, WAIT_MS_MAX},
};

/// How failures are retried. Unset fields are inherited, field by field: step > workflow > namespace >
/// server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RetryPolicy {
    /// Executions, the first included; -1 = no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_attempts: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_interval_ms: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_coefficient: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_interval_ms: Option<Millis>,
    /// Error codes that end the step at once; a prefix of the message matches too, for compatibility.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub non_retryable_errors: Vec<String>,
    /// When not empty, only these error codes are retried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retryable_errors: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// The half-width of the jitter, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<f64>,
    /// The delays of a custom backoff.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schedule_ms: Vec<Millis>,
    /// No retry may begin later than this after the step's first attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_timeout_ms: Option<Millis>,
    /// Retries of all steps of a run together; -1 = no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_retries_max: Option<i32>,
    /// Waiting for retries of all steps of a run together; -1 = no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_retry_budget_ms: Option<Millis>,
}

impl Finality {
    /// Every one of them.
    pub const ALL: [Finality; 6] = [
        Finality::NonRetryable,
        Finality::Denied,
        Finality::Exhausted,
        Finality::RetryTimeout,
        Finality::RunBudget,
        Finality::Rejected,
    ];

    /// The one with this number, if there is one.
    pub fn from_number(number: u64) -> Option<Finality> {
        Finality::ALL.into_iter().find(|finality| *finality as u64 == number)
    }

    /// The name that users and other languages read.
    pub fn name(self) -> &'static str {
        match self {
            Finality::NonRetryable => "non_retryable",
            Finality::Denied => "denied",
            Finality::Exhausted => "exhausted",
            Finality::RetryTimeout => "retry_timeout",
            Finality::RunBudget => "run_budget",
            Finality::Rejected => "rejected",
        }
    }
}

/// What is known about a failed attempt.
#[derive(Debug, Clone, Copy)]
pub struct FailedAttempt<'a> {
    /// Counted from 1.
    pub attempt: u32,
    pub failure: &'a Failure,
    /// See [`crate::backoff_seed`].
    pub seed: u64,
    /// Time since the step's first attempt began.
    pub elapsed_ms: Millis,
    /// Retries that the run was granted before, and the waiting they added up to: by policy, and because
    /// failures named a time.
    pub run_retries: u32,
    pub run_retry_ms: Millis,
    pub run_asked_ms: Millis,
}

/// What follows a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    RetryAfter { delay_ms: Millis },
    Final(Finality),
}

/// Why there is no further attempt; the numbers are stored, and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
#[serde(rename_all = "snake_case")]
pub enum Finality {
    /// The reporter said so.
    NonRetryable = 1,
    /// The policy names the error as final, or does not name it as retryable.
    Denied = 2,
    /// Every attempt was used.
    Exhausted = 3,
    /// The next attempt would begin after the step's retry timeout.
    RetryTimeout = 4,
    /// The run's steps used up their common retries or waiting time.
    RunBudget = 5,
    /// Somebody said that what was waited for has failed.
    Rejected = 6,
}

/// A policy that makes no sense, with the field and the rule.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{field} is {value}: {rule}")]
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
    pub const JITTER: f64 = 0.5;
    /// Run-wide limits, in force unless a policy sets its own or retries without end.
    pub const RUN_RETRIES_MAX: i32 = 20;
    pub const RUN_RETRY_BUDGET_MS: Millis = 30 * 60_000;

    /// This policy, with `outer` filling the fields it leaves open.
    pub fn or(&self, outer: &RetryPolicy) -> RetryPolicy {
        let list = |own: &Vec<String>, outer: &Vec<String>| if own.is_empty() { outer } else { own }.clone();
        RetryPolicy {
            maximum_attempts: self.maximum_attempts.or(outer.maximum_attempts),
            initial_interval_ms: self.initial_interval_ms.or(outer.initial_interval_ms),
            backoff_coefficient: self.backoff_coefficient.or(outer.backoff_coefficient),
            maximum_interval_ms: self.maximum_interval_ms.or(outer.maximum_interval_ms),
            non_retryable_errors: list(&self.non_retryable_errors, &outer.non_retryable_errors),
            retryable_errors: list(&self.retryable_errors, &outer.retryable_errors),
            backoff: self.backoff.or(outer.backoff),
            jitter: self.jitter.or(outer.jitter),
            schedule_ms: if self.schedule_ms.is_empty() { &outer.schedule_ms } else { &self.schedule_ms }
                .clone(),
            retry_timeout_ms: self.retry_timeout_ms.or(outer.retry_timeout_ms),
            run_retries_max: self.run_retries_max.or(outer.run_retries_max),
            run_retry_budget_ms: self.run_retry_budget_ms.or(outer.run_retry_budget_ms),
        }
    }

    /// Refuses values that no delay can be computed from.
    pub fn check(&self) -> Result<(), PolicyError> {
        let wrong = |field, value: String, rule| Err(PolicyError { field, value, rule });
        let counts = "it counts executions: 1 or more, or -1 for no limit";
        if let Some(n) = self.maximum_attempts
            && (n == 0 || n < -1)
        {
            return wrong("maximum_attempts", n.to_string(), counts);
        }
        if let Some(n) = self.run_retries_max
            && n < -1
        {
            return wrong("run_retries_max", n.to_string(), "it must be 0 or more, or -1 for no limit");
        }
        for (field, interval, least) in [
            ("initial_interval_ms", self.initial_interval_ms, 0),
            ("maximum_interval_ms", self.maximum_interval_ms, 0),
            ("retry_timeout_ms", self.retry_timeout_ms, 0),
            ("run_retry_budget_ms", self.run_retry_budget_ms, -1),
        ] {
            if let Some(ms) = interval
                && !(least..=WAIT_MS_MAX).contains(&ms)
            {
                return wrong(field, ms.to_string(), "it must be between 0 and ten years");
            }
        }
        if let Some(c) = self.backoff_coefficient
            && !(1.0..=1000.0).contains(&c)
        {
            return wrong("backoff_coefficient", c.to_string(), "it must be between 1 and 1000");
        }
        if let Some(j) = self.jitter
            && !(0.0..=1.0).contains(&j)
        {
            return wrong("jitter", j.to_string(), "it must be between 0 and 1");
        }
        if let (Some(first), Some(most)) = (self.initial_interval_ms, self.maximum_interval_ms)
            && first > most
        {
            return wrong("initial_interval_ms", first.to_string(), "it must not exceed maximum_interval_ms");
        }
        for (field, codes) in [
            ("non_retryable_errors", &self.non_retryable_errors),
            ("retryable_errors", &self.retryable_errors),
        ] {
            if codes.len() > POLICY_CODES_MAX {
                return wrong(field, codes.len().to_string(), "at most 100 codes are allowed");
            }
            if codes.iter().any(String::is_empty) {
                return wrong(field, "\"\"".into(), "an empty code would match everything");
            }
        }
        if self.schedule_ms.len() > SCHEDULE_LEN_MAX {
            return wrong(
                "schedule_ms",
                self.schedule_ms.len().to_string(),
                "at most 100 delays are allowed",
            );
        }
        if let Some(ms) = self.schedule_ms.iter().find(|ms| !(0..=WAIT_MS_MAX).contains(*ms)) {
            return wrong("schedule_ms", ms.to_string(), "each delay must be between 0 and ten years");
        }
        if self.backoff == Some(Backoff::Custom) && self.schedule_ms.is_empty() {
            return wrong("schedule_ms", "[]".into(), "a custom backoff needs at least one delay");
        }
        Ok(())
    }

    /// What follows a failed attempt. Deny list before allow list before the limits.
    pub fn verdict(&self, failed: &FailedAttempt<'_>) -> Verdict {
        let FailedAttempt { attempt, failure, .. } = *failed;
        let limit = self.maximum_attempts.unwrap_or(Self::MAXIMUM_ATTEMPTS);
        if failure.non_retryable {
            return Verdict::Final(Finality::NonRetryable);
        }
        if self.denies(failure) {
            return Verdict::Final(Finality::Denied);
        }
        if limit >= 0 && attempt >= limit.unsigned_abs() {
            return Verdict::Final(Finality::Exhausted);
        }
        let delay_ms = failure.retry_after_ms.unwrap_or_else(|| self.delay_ms(attempt, failed.seed));
        let delay_ms = delay_ms.clamp(0, WAIT_MS_MAX);
        // The next delay counts: a retry that would begin too late is not waited for.
        let too_late = |budget_ms: Millis, used_ms: Millis| {
            budget_ms >= 0 && used_ms.saturating_add(delay_ms) > budget_ms
        };
        if self.retry_timeout_ms.is_some_and(|budget| too_late(budget, failed.elapsed_ms)) {
            return Verdict::Final(Finality::RetryTimeout);
        }
        // Whoever asks for retries without end gets them, unless the run is limited on purpose.
        let endless = limit < 0;
        let retries_max = self.run_retries_max.unwrap_or(if endless { -1 } else { Self::RUN_RETRIES_MAX });
        let too_many = retries_max >= 0 && failed.run_retries >= retries_max.unsigned_abs();
        let over_budget = match self.run_retry_budget_ms {
            Some(budget_ms) => too_late(budget_ms, failed.run_retry_ms.saturating_add(failed.run_asked_ms)),
            // The default is there to end policies that wait too much. A receiver that names an hour is
            // neither to be asked sooner nor a reason to give up.
            None if endless || failure.retry_after_ms.is_some() => false,
            None => too_late(Self::RUN_RETRY_BUDGET_MS, failed.run_retry_ms),
        };
        if too_many || over_budget {
            return Verdict::Final(Finality::RunBudget);
        }
        Verdict::RetryAfter { delay_ms }
    }

    /// The delay after the n-th failed execution.
    pub fn delay_ms(&self, attempt: u32, seed: u64) -> Millis {
        let initial_ms = self.initial_interval_ms.unwrap_or(Self::INITIAL_INTERVAL_MS);
        Delay {
            backoff: self.backoff.unwrap_or(Backoff::Exponential),
            initial_ms,
            coefficient: self.backoff_coefficient.unwrap_or(Self::BACKOFF_COEFFICIENT),
            // An explicit first interval above the default cap lifts the cap, or it could never be honoured.
            maximum_ms: self.maximum_interval_ms.unwrap_or(Self::MAXIMUM_INTERVAL_MS.max(initial_ms)),
            jitter: self.jitter.unwrap_or(Self::JITTER),
            schedule_ms: &self.schedule_ms,
            seed,
        }
        .after(attempt)
    }

    fn denies(&self, failure: &Failure) -> bool {
        let matches = |code: &String| *code == *failure.code || failure.message.starts_with(code.as_str());
        if self.non_retryable_errors.iter().any(matches) {
            return true;
        }
        !self.retryable_errors.is_empty() && !self.retryable_errors.iter().any(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(attempt: u32, failure: &Failure) -> FailedAttempt<'_> {
        FailedAttempt {
            attempt,
            failure,
            seed: 0,
            elapsed_ms: 0,
            run_retries: 0,
            run_retry_ms: 0,
            run_asked_ms: 0,
        }
    }

    #[test]
    fn the_default_delays_are_one_two_four_eight_seconds_up_to_a_minute() {
        let policy = RetryPolicy::default();

        let delays: Vec<_> = (1..=8).map(|n| policy.delay_ms(n, 0)).collect();

        assert_eq!(delays, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(policy.delay_ms(u32::MAX, 0), 60_000);
    }

    #[test]
    fn the_default_is_five_executions() {
        let policy = RetryPolicy::default();
        let failure = Failure::new("X", "x");

        assert_eq!(policy.verdict(&failed(4, &failure)), Verdict::RetryAfter { delay_ms: 8_000 });
        assert_eq!(policy.verdict(&failed(5, &failure)), Verdict::Final(Finality::Exhausted));
    }

    #[test]
    fn maximum_attempts_counts_executions() {
        let policy = RetryPolicy { maximum_attempts: Some(2), ..Default::default() };
        let failure = Failure::new("X", "x");

        assert_eq!(policy.verdict(&failed(1, &failure)), Verdict::RetryAfter { delay_ms: 1_000 });
        assert_eq!(policy.verdict(&failed(2, &failure)), Verdict::Final(Finality::Exhausted));
    }

    #[test]
    fn minus_one_retries_without_end_and_without_run_wide_limits() {
        let policy = RetryPolicy { maximum_attempts: Some(-1), ..Default::default() };
        let failure = Failure::new("X", "x");
        let late =
            FailedAttempt { run_retries: u32::MAX, run_retry_ms: i64::MAX, ..failed(u32::MAX, &failure) };

        assert_eq!(policy.verdict(&late), Verdict::RetryAfter { delay_ms: 60_000 });
    }

    #[test]
    fn the_reporter_can_end_or_delay() {
        let policy = RetryPolicy::default();
        let over = Failure::new("X", "x").non_retryable();
        let later = Failure::new("X", "x").retry_after(30_000);

        assert_eq!(policy.verdict(&failed(1, &over)), Verdict::Final(Finality::NonRetryable));
        assert_eq!(policy.verdict(&failed(1, &later)), Verdict::RetryAfter { delay_ms: 30_000 });
    }

    #[test]
    fn listed_codes_and_message_prefixes_are_final() {
        let policy = RetryPolicy {
            non_retryable_errors: vec!["DECLINED".into(), "invalid".into()],
            ..Default::default()
        };
        let of = |code, message| policy.verdict(&failed(1, &Failure::new(code, message)));

        assert_eq!(of("DECLINED", "no money"), Verdict::Final(Finality::Denied));
        assert_eq!(of("", "invalid amount"), Verdict::Final(Finality::Denied));
        assert_eq!(of("", "an invalid"), Verdict::RetryAfter { delay_ms: 1_000 });
    }

    #[test]
    fn an_allow_list_retries_only_what_it_names_and_the_deny_list_goes_first() {
        let policy = RetryPolicy {
            retryable_errors: vec!["BUSY".into(), "DECLINED".into()],
            non_retryable_errors: vec!["DECLINED".into()],
            ..Default::default()
        };
        let of = |code| policy.verdict(&failed(1, &Failure::new(code, "")));

        assert_eq!(of("BUSY"), Verdict::RetryAfter { delay_ms: 1_000 });
        assert_eq!(of("OTHER"), Verdict::Final(Finality::Denied));
        assert_eq!(of("DECLINED"), Verdict::Final(Finality::Denied));
    }

    #[test]
    fn the_time_budget_counts_the_next_delay() {
        let policy = RetryPolicy { retry_timeout_ms: Some(5_000), ..Default::default() };
        let failure = Failure::new("X", "x");
        let at = |elapsed_ms| policy.verdict(&FailedAttempt { elapsed_ms, ..failed(1, &failure) });

        assert_eq!(at(4_000), Verdict::RetryAfter { delay_ms: 1_000 });
        assert_eq!(at(4_001), Verdict::Final(Finality::RetryTimeout));
    }

    #[test]
    fn a_run_has_twenty_retries_and_half_an_hour_of_waiting() {
        let policy = RetryPolicy::default();
        let failure = Failure::new("X", "x");
        let with = |run_retries, run_retry_ms| {
            policy.verdict(&FailedAttempt { run_retries, run_retry_ms, ..failed(1, &failure) })
        };

        assert_eq!(with(19, 0), Verdict::RetryAfter { delay_ms: 1_000 });
        assert_eq!(with(20, 0), Verdict::Final(Finality::RunBudget));
        assert_eq!(with(0, 30 * 60_000 - 1_000), Verdict::RetryAfter { delay_ms: 1_000 });
        assert_eq!(with(0, 30 * 60_000 - 999), Verdict::Final(Finality::RunBudget));
    }

    #[test]
    fn a_wait_that_the_failure_asks_for_is_measured_only_by_a_budget_that_was_set() {
        let an_hour = Failure::new("BUSY", "x").retry_after(3_600_000);
        let plain = Failure::new("X", "x");
        let unset = RetryPolicy::default();
        let set = RetryPolicy { run_retry_budget_ms: Some(5_400_000), ..Default::default() };
        let after_one =
            |failure| FailedAttempt { run_retries: 1, run_asked_ms: 3_600_000, ..failed(1, failure) };
        let granted = |delay_ms| Verdict::RetryAfter { delay_ms };

        assert_eq!(unset.verdict(&failed(1, &an_hour)), granted(3_600_000));
        assert_eq!(unset.verdict(&after_one(&an_hour)), granted(3_600_000));
        assert_eq!(unset.verdict(&after_one(&plain)), granted(1_000));
        assert_eq!(set.verdict(&failed(1, &an_hour)), granted(3_600_000));
        assert_eq!(set.verdict(&after_one(&an_hour)), Verdict::Final(Finality::RunBudget));
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
        assert_eq!(with(RetryPolicy { jitter: Some(1.5), ..base() }), "jitter");
        assert_eq!(with(RetryPolicy { run_retries_max: Some(-2), ..base() }), "run_retries_max");
        assert_eq!(with(RetryPolicy { retry_timeout_ms: Some(-1), ..base() }), "retry_timeout_ms");
        assert_eq!(with(RetryPolicy { backoff: Some(Backoff::Custom), ..base() }), "schedule_ms");
        assert_eq!(with(RetryPolicy { retryable_errors: vec![String::new()], ..base() }), "retryable_errors");
        let crossed = RetryPolicy { initial_interval_ms: Some(9), maximum_interval_ms: Some(8), ..base() };
        assert_eq!(with(crossed), "initial_interval_ms");
    }
}
