//! What an operator can set, with the defaults that were decided.

use std::time::Duration;

use kagzi_model::{
    Defaults, Millis, RetryPolicy, Timeouts,
    limits::{LOSSES_STANDARD, PAYLOAD_LIMIT_BYTES_MAX, RETENTION_MS_MIN},
};
use kagzi_store::ServerControls;

/// The longest retention that is a number and not a wish.
const RETENTION_MAX: Duration = Duration::from_secs(36_500 * 86_400);

/// Workers are counted no further.
const WORKERS_ONLINE_MAX: u32 = kagzi_store::TOTAL_MAX as u32;
/// Whoever creates a schedule has those that are there counted.
const SCHEDULES_STANDARD: usize = 1_000;
const SCHEDULES_MAX: usize = 100_000;

/// Settings of one engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Workers are told to send a heartbeat this often.
    pub heartbeat_interval: Duration,
    /// A worker not heard of for this long is lost: its runs are taken over at once.
    pub stale_after: Duration,
    /// A lease lasts this long beyond the last heartbeat that named it.
    pub lease: Duration,
    /// A worker whose connection broke and that does not come back within this is taken for dead: its runs go
    /// on elsewhere. Fencing makes that safe should it live.
    pub reconnect_grace: Duration,
    /// A run that loses its worker this often in a row without progress is quarantined, whatever the retry
    /// policy of its steps says.
    pub worker_losses_max: u32,
    /// Payloads above this are logged.
    pub payload_warn_bytes: usize,
    /// Payloads above this are refused.
    pub payload_max_bytes: usize,
    /// Longest wait of one poll or one wait for a result.
    pub wait_max: Duration,
    /// Steps of one run that a worker executes at once.
    pub step_concurrency_max: u32,
    /// Longest execution of one attempt of a step that sets no limit itself.
    pub start_to_close: Duration,
    /// Fills the fields that the retry policies of a run and of its namespace leave open.
    pub retry: RetryPolicy,
    /// A namespace that nobody created is made by the first start or worker that names it. When false, both
    /// are refused until somebody creates it: `kagzi ns create NAME`.
    pub create_namespaces: bool,
    /// So many namespaces are made that way until the server is started again.
    pub namespaces_made_max: u64,
    /// Workers of one namespace that may be online at once.
    pub workers_online_max: u32,
    /// Schedules that one namespace may have.
    pub schedules_max: usize,
    /// Workers that went offline are forgotten after this long.
    pub forget_workers_after: Duration,
    /// Runs that ended longer ago are deleted; none keeps them for ever. A namespace's own retention goes
    /// before it.
    pub retention: Option<Duration>,
    /// How schedules are fired.
    pub scheduler: SchedulerSettings,
}

/// Settings of the scheduler (`KAGZI_SCHEDULER_*` in the environment).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedulerSettings {
    /// Schedules fire from an armed timer; this often the scheduler looks around anyway.
    pub interval: Duration,
    /// Schedules read at once.
    pub batch_size: usize,
    /// Runs started before others get their turn.
    pub max_workflows_per_tick: usize,
}

impl Default for SchedulerSettings {
    fn default() -> Self {
        SchedulerSettings { interval: Duration::from_secs(5), batch_size: 100, max_workflows_per_tick: 1000 }
    }
}

/// A setting under which the engine could not work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {rule}")]
pub struct SettingError {
    /// As the configuration calls it: `worker.lease`.
    pub key: &'static str,
    pub rule: String,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            heartbeat_interval: Duration::from_secs(3),
            stale_after: Duration::from_secs(10),
            lease: Duration::from_secs(30),
            reconnect_grace: Duration::from_secs(2),
            worker_losses_max: LOSSES_STANDARD,
            payload_warn_bytes: 1024 * 1024,
            payload_max_bytes: 2 * 1024 * 1024,
            wait_max: Duration::from_secs(60),
            step_concurrency_max: 10,
            start_to_close: Duration::from_secs(600),
            retry: RetryPolicy::default(),
            create_namespaces: true,
            namespaces_made_max: 10_000,
            workers_online_max: WORKERS_ONLINE_MAX,
            schedules_max: SCHEDULES_STANDARD,
            forget_workers_after: Duration::from_secs(7 * 24 * 3600),
            retention: Some(Duration::from_secs(90 * 24 * 3600)),
            scheduler: SchedulerSettings::default(),
        }
    }
}

impl Settings {
    /// The lease's length as the model counts it.
    pub fn lease_ms(&self) -> Millis {
        millis(self.lease)
    }

    /// What this server adds to the rules of namespaces. Its timeouts are not written into every run: who
    /// needs one asks here, and so a new setting holds for runs that are there already.
    pub fn controls(&self) -> ServerControls {
        let defaults = Defaults { retry: self.retry.clone(), timeouts: Timeouts::default() };
        ServerControls {
            defaults,
            create_namespaces: self.create_namespaces,
            namespaces_made_max: self.namespaces_made_max,
            worker_losses_max: self.worker_losses_max,
        }
    }

    /// Refuses settings under which workers could not keep their leases, or nothing could be done at all.
    pub fn check(&self) -> Result<(), SettingError> {
        let broken = |key, rule: String| Err(SettingError { key, rule });
        let zero = [
            ("worker.heartbeat_interval", self.heartbeat_interval.is_zero()),
            ("worker.reconnect_grace", self.reconnect_grace.is_zero()),
            ("worker.losses_max", self.worker_losses_max == 0),
            ("server.wait_max", self.wait_max.is_zero()),
            ("worker.online_max", self.workers_online_max == 0),
            ("scheduler.schedules_max", self.schedules_max == 0),
            ("step.start_to_close", self.start_to_close.is_zero()),
            ("step.concurrency_max", self.step_concurrency_max == 0),
            ("payload.max_size_bytes", self.payload_max_bytes == 0),
            ("scheduler.interval_secs", self.scheduler.interval.is_zero()),
            ("scheduler.batch_size", self.scheduler.batch_size == 0),
            ("scheduler.max_workflows_per_tick", self.scheduler.max_workflows_per_tick == 0),
        ];
        if let Some((key, _)) = zero.into_iter().find(|(_, zero)| *zero) {
            return broken(key, "it must be above zero".into());
        }
        if self.stale_after < self.heartbeat_interval * 2 {
            return broken(
                "worker.stale_after",
                format!(
                    "it is {:?} and must be at least twice worker.heartbeat_interval ({:?}), or one late \
                     heartbeat \
                     loses a worker",
                    self.stale_after, self.heartbeat_interval
                ),
            );
        }
        if self.lease < self.stale_after {
            return broken(
                "worker.lease",
                format!(
                    "it is {:?} and must not be shorter than worker.stale_after ({:?})",
                    self.lease, self.stale_after
                ),
            );
        }
        if self.workers_online_max > WORKERS_ONLINE_MAX {
            return broken(
                "worker.online_max",
                format!("it is {} and must be at most {WORKERS_ONLINE_MAX}", self.workers_online_max),
            );
        }
        if self.schedules_max > SCHEDULES_MAX {
            return broken(
                "scheduler.schedules_max",
                format!("it is {} and must be at most {SCHEDULES_MAX}", self.schedules_max),
            );
        }
        if self.retention.is_some_and(|kept| millis(kept) < RETENTION_MS_MIN) {
            return broken(
                "retention.finished_runs",
                "it must be at least 2m, so that a start that a client repeats finds its run; 0s keeps ended \
                 runs for ever"
                    .into(),
            );
        }
        if self.retention.is_some_and(|kept| kept > RETENTION_MAX) {
            return broken(
                "retention.finished_runs",
                "it must be at most 36500d, a hundred years; 0s keeps ended runs for ever".into(),
            );
        }
        if self.payload_warn_bytes > self.payload_max_bytes {
            return broken(
                "payload.warn_threshold_bytes",
                format!(
                    "it is {} and must not be above payload.max_size_bytes ({})",
                    self.payload_warn_bytes, self.payload_max_bytes
                ),
            );
        }
        if self.payload_max_bytes > PAYLOAD_LIMIT_BYTES_MAX {
            return broken(
                "payload.max_size_bytes",
                format!(
                    "it is {} and must not be above {PAYLOAD_LIMIT_BYTES_MAX}; Kagzi is no blob storage",
                    self.payload_max_bytes
                ),
            );
        }
        if let Err(error) = self.retry.check() {
            return broken(retry_key(error.field), format!("it is {} and {}", error.value, error.rule));
        }
        Ok(())
    }
}

/// What the configuration calls a field of the retry policy.
fn retry_key(field: &str) -> &'static str {
    match field {
        "maximum_attempts" => "retry.maximum_attempts",
        "initial_interval_ms" => "retry.initial_interval",
        "backoff_coefficient" => "retry.backoff_coefficient",
        "maximum_interval_ms" => "retry.maximum_interval",
        "jitter" => "retry.jitter",
        "non_retryable_errors" => "retry.non_retryable_errors",
        "run_retries_max" => "retry.run_retries_max",
        "run_retry_budget_ms" => "retry.run_retry_budget",
        _ => "retry",
    }
}

/// A duration in whole milliseconds, saturating.
pub fn millis(duration: Duration) -> Millis {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_may_take_ten_minutes_and_a_worker_be_silent_for_half_a_minute() {
        let settings = Settings::default();

        assert_eq!((settings.start_to_close.as_secs(), settings.lease.as_secs()), (600, 30));
        assert_eq!(settings.retry, RetryPolicy::default());
    }

    #[test]
    fn the_defaults_are_sound() {
        assert_eq!(Settings::default().check(), Ok(()));
    }

    #[test]
    fn a_worker_must_be_allowed_one_late_heartbeat() {
        let settings = Settings { stale_after: Duration::from_secs(4), ..Settings::default() };

        let broken = settings.check().unwrap_err();
        assert_eq!(broken.key, "worker.stale_after");
        assert!(broken.rule.contains("at least twice"));
    }

    #[test]
    fn the_payload_limit_is_itself_limited() {
        let with = |payload_max_bytes| Settings { payload_max_bytes, ..Settings::default() }.check();

        assert_eq!(with(PAYLOAD_LIMIT_BYTES_MAX), Ok(()));
        let broken = with(PAYLOAD_LIMIT_BYTES_MAX + 1).unwrap_err();
        assert_eq!(broken.key, "payload.max_size_bytes");
        assert!(broken.rule.contains("it is 16777217"), "{broken}");
        assert!(with(0).is_err());
    }
}
