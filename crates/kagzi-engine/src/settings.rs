//! What an operator can set, with the defaults that were decided.

mod rules;

use std::time::Duration;

use kagzi_model::{Defaults, Millis, RetryPolicy, Timeouts, limits::LOSSES_STANDARD};
use kagzi_store::ServerControls;

pub use rules::{SettingError, SettingField};

/// Workers are counted no further.
const WORKERS_ONLINE_MAX: u32 = kagzi_store::TOTAL_MAX as u32;
/// Whoever creates a schedule has those that are there counted.
const SCHEDULES_STANDARD: usize = 1_000;

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
}
