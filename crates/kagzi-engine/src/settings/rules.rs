//! Which settings an engine can work with. What they are called is the configuration's affair.

use std::fmt;
use std::time::Duration;

use kagzi_model::limits::{PAYLOAD_LIMIT_BYTES_MAX, RETENTION_MS_MIN};

use super::{Settings, WORKERS_ONLINE_MAX, millis};

/// The longest retention that is a number and not a wish.
const RETENTION_MAX: Duration = Duration::from_secs(36_500 * 86_400);
const SCHEDULES_MAX: usize = 100_000;

/// A setting that can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingField {
    HeartbeatInterval,
    StaleAfter,
    Lease,
    ReconnectGrace,
    WorkerLossesMax,
    WorkersOnlineMax,
    PayloadWarnBytes,
    PayloadMaxBytes,
    WaitMax,
    StepConcurrencyMax,
    StartToClose,
    SchedulesMax,
    SchedulerInterval,
    SchedulerBatchSize,
    SchedulerMaxWorkflowsPerTick,
    Retention,
    /// A field of the retry policy, as the contract calls it.
    Retry(&'static str),
}

/// A setting under which the engine could not work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingError {
    pub field: SettingField,
    /// What it must be; `{}` stands for the other setting.
    rule: String,
    other: Option<SettingField>,
}

impl SettingError {
    /// What the setting must be, for whoever has names for settings.
    pub fn rule(&self, name: impl Fn(SettingField) -> String) -> String {
        match self.other {
            Some(other) => self.rule.replace("{}", &name(other)),
            None => self.rule.clone(),
        }
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.field, self.rule(|other| format!("{other:?}")))
    }
}

impl std::error::Error for SettingError {}

impl Settings {
    /// Refuses settings under which workers could not keep their leases, or nothing could be done at all.
    pub fn check(&self) -> Result<(), SettingError> {
        use SettingField as Field;
        let broken = |field, rule: String| Err(SettingError { field, rule, other: None });
        let beside = |field, other, rule: String| Err(SettingError { field, rule, other: Some(other) });
        let zero = [
            (Field::HeartbeatInterval, self.heartbeat_interval.is_zero()),
            (Field::ReconnectGrace, self.reconnect_grace.is_zero()),
            (Field::WorkerLossesMax, self.worker_losses_max == 0),
            (Field::WaitMax, self.wait_max.is_zero()),
            (Field::WorkersOnlineMax, self.workers_online_max == 0),
            (Field::SchedulesMax, self.schedules_max == 0),
            (Field::StartToClose, self.start_to_close.is_zero()),
            (Field::StepConcurrencyMax, self.step_concurrency_max == 0),
            (Field::PayloadMaxBytes, self.payload_max_bytes == 0),
            (Field::SchedulerInterval, self.scheduler.interval.is_zero()),
            (Field::SchedulerBatchSize, self.scheduler.batch_size == 0),
            (Field::SchedulerMaxWorkflowsPerTick, self.scheduler.max_workflows_per_tick == 0),
        ];
        if let Some((field, _)) = zero.into_iter().find(|(_, zero)| *zero) {
            return broken(field, "it must be above zero".into());
        }
        if self.stale_after < self.heartbeat_interval * 2 {
            let (stale_after, interval) = (self.stale_after, self.heartbeat_interval);
            let rule = format!(
                "it is {stale_after:?} and must be at least twice {{}} ({interval:?}), or one late \
                 heartbeat loses a worker"
            );
            return beside(Field::StaleAfter, Field::HeartbeatInterval, rule);
        }
        if self.lease < self.stale_after {
            let rule =
                format!("it is {:?} and must not be shorter than {{}} ({:?})", self.lease, self.stale_after);
            return beside(Field::Lease, Field::StaleAfter, rule);
        }
        if self.workers_online_max > WORKERS_ONLINE_MAX {
            let rule = format!("it is {} and must be at most {WORKERS_ONLINE_MAX}", self.workers_online_max);
            return broken(Field::WorkersOnlineMax, rule);
        }
        if self.schedules_max > SCHEDULES_MAX {
            let rule = format!("it is {} and must be at most {SCHEDULES_MAX}", self.schedules_max);
            return broken(Field::SchedulesMax, rule);
        }
        if self.retention.is_some_and(|kept| millis(kept) < RETENTION_MS_MIN) {
            let rule = "it must be at least 2m, so that a start that a client repeats finds its run; 0s keeps \
                        ended runs for ever";
            return broken(Field::Retention, rule.into());
        }
        if self.retention.is_some_and(|kept| kept > RETENTION_MAX) {
            let rule = "it must be at most 36500d, a hundred years; 0s keeps ended runs for ever";
            return broken(Field::Retention, rule.into());
        }
        if self.payload_warn_bytes > self.payload_max_bytes {
            let (warn, max) = (self.payload_warn_bytes, self.payload_max_bytes);
            let rule = format!("it is {warn} and must not be above {{}} ({max})");
            return beside(Field::PayloadWarnBytes, Field::PayloadMaxBytes, rule);
        }
        if self.payload_max_bytes > PAYLOAD_LIMIT_BYTES_MAX {
            let (max, most) = (self.payload_max_bytes, PAYLOAD_LIMIT_BYTES_MAX);
            let rule = format!("it is {max} and must not be above {most}; Kagzi is no blob storage");
            return broken(Field::PayloadMaxBytes, rule);
        }
        if let Err(error) = self.retry.check() {
            return broken(Field::Retry(error.field), format!("it is {} and {}", error.value, error.rule));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_must_be_allowed_one_late_heartbeat() {
        let settings = Settings { stale_after: Duration::from_secs(4), ..Settings::default() };

        let broken = settings.check().unwrap_err();
        assert_eq!(broken.field, SettingField::StaleAfter);
        assert!(broken.to_string().contains("at least twice HeartbeatInterval (3s)"), "{broken}");
    }

    #[test]
    fn the_payload_limit_is_itself_limited() {
        let with = |payload_max_bytes| Settings { payload_max_bytes, ..Settings::default() }.check();

        assert_eq!(with(PAYLOAD_LIMIT_BYTES_MAX), Ok(()));
        let broken = with(PAYLOAD_LIMIT_BYTES_MAX + 1).unwrap_err();
        assert_eq!(broken.field, SettingField::PayloadMaxBytes);
        assert!(broken.to_string().contains("it is 16777217"), "{broken}");
        assert!(with(0).is_err());
    }
}
