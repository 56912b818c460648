//! What the configuration calls a setting of the engine.

use kagzi_engine::{SettingError, SettingField};

/// A setting under which a server could not work, by its key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {rule}")]
pub struct InvalidSetting {
    /// `worker.lease`
    pub key: String,
    pub rule: String,
}

impl InvalidSetting {
    pub(crate) fn new(key: &str, rule: impl Into<String>) -> InvalidSetting {
        InvalidSetting { key: key.to_owned(), rule: rule.into() }
    }
}

impl From<SettingError> for InvalidSetting {
    fn from(error: SettingError) -> InvalidSetting {
        InvalidSetting { key: key_of(error.field), rule: error.rule(key_of) }
    }
}

fn key_of(field: SettingField) -> String {
    let key = match field {
        SettingField::HeartbeatInterval => "worker.heartbeat_interval",
        SettingField::StaleAfter => "worker.stale_after",
        SettingField::Lease => "worker.lease",
        SettingField::ReconnectGrace => "worker.reconnect_grace",
        SettingField::WorkerLossesMax => "worker.losses_max",
        SettingField::WorkersOnlineMax => "worker.online_max",
        SettingField::PayloadWarnBytes => "payload.warn_threshold_bytes",
        SettingField::PayloadMaxBytes => "payload.max_size_bytes",
        SettingField::WaitMax => "server.wait_max",
        SettingField::StepConcurrencyMax => "step.concurrency_max",
        SettingField::StartToClose => "step.start_to_close",
        SettingField::SchedulesMax => "scheduler.schedules_max",
        SettingField::SchedulerInterval => "scheduler.interval_secs",
        SettingField::SchedulerBatchSize => "scheduler.batch_size",
        SettingField::SchedulerMaxWorkflowsPerTick => "scheduler.max_workflows_per_tick",
        SettingField::Retention => "retention.finished_runs",
        // Durations have their unit in the value here, and in the name there.
        SettingField::Retry(field) => return format!("retry.{}", field.trim_end_matches("_ms")),
    };
    key.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, KeyDoc};

    #[test]
    fn every_setting_that_can_be_wrong_is_a_key_that_can_be_set() {
        let known: Vec<String> = Config::keys().iter().map(KeyDoc::path).collect();
        let retry = [
            "maximum_attempts",
            "initial_interval_ms",
            "backoff_coefficient",
            "maximum_interval_ms",
            "jitter",
            "non_retryable_errors",
            "run_retries_max",
            "run_retry_budget_ms",
        ];
        let others = [
            SettingField::HeartbeatInterval,
            SettingField::StaleAfter,
            SettingField::Lease,
            SettingField::ReconnectGrace,
            SettingField::WorkerLossesMax,
            SettingField::WorkersOnlineMax,
            SettingField::PayloadWarnBytes,
            SettingField::PayloadMaxBytes,
            SettingField::WaitMax,
            SettingField::StepConcurrencyMax,
            SettingField::StartToClose,
            SettingField::SchedulesMax,
            SettingField::SchedulerInterval,
            SettingField::SchedulerBatchSize,
            SettingField::SchedulerMaxWorkflowsPerTick,
            SettingField::Retention,
        ];

        for field in retry.into_iter().map(SettingField::Retry).chain(others) {
            let key = key_of(field);
            assert!(known.contains(&key), "{field:?} is called {key}, which cannot be set");
        }
    }
}
