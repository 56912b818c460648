use crate::exit::Trouble;
use kagzi::RetryPolicy;
use kagzi::admin::NamespaceSettings;
use kagzi::client::Timeouts;
use std::time::Duration;

/// What can be set on a namespace.
#[derive(clap::Args, Default)]
pub struct Values {
    /// What the namespace is for.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Executions of a step, the first included; -1 = no limit.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_attempts: Option<i32>,
    /// Delay before the first retry, in milliseconds.
    #[arg(long, value_name = "MS")]
    initial_interval_ms: Option<u64>,
    /// Longest delay before a retry, in milliseconds.
    #[arg(long, value_name = "MS")]
    max_interval_ms: Option<u64>,
    /// A named retry policy: CRITICAL, STANDARD, QUICK, RATE_LIMITED, IMMEDIATE or NONE.
    #[arg(long, value_name = "PRESET")]
    retry_preset: Option<String>,
    /// Longest execution of one attempt of a step, in seconds.
    #[arg(long, value_name = "SECONDS")]
    step_timeout: Option<u64>,
    /// Longest time of a whole run, in seconds; 0 = none.
    #[arg(long, value_name = "SECONDS")]
    execution_timeout: Option<u64>,
    /// How long a silent worker keeps a run, in seconds.
    #[arg(long, value_name = "SECONDS")]
    heartbeat_timeout: Option<u64>,
    /// How many days finished runs are kept, with their history; then they are deleted.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3650))]
    retention_days: Option<u32>,
    /// Most runs that execute at once, over all queues, workers and servers.
    #[arg(long, value_name = "N")]
    max_concurrent: Option<u32>,
    /// Where the failure handler starts when no worker has registered it.
    #[arg(long, value_name = "QUEUE")]
    failure_handler_queue: Option<String>,
}

const DAY: Duration = Duration::from_secs(24 * 3600);

impl Values {
    pub fn settings(self) -> anyhow::Result<NamespaceSettings> {
        let preset = match &self.retry_preset {
            None => RetryPolicy::default(),
            Some(name) => RetryPolicy::preset(name).ok_or_else(|| {
                let presets = RetryPolicy::PRESETS.join(", ");
                Trouble::usage(format!("--retry-preset is '{name}': it must be one of {presets}"))
            })?,
        };
        let millis = |ms: Option<u64>| ms.map(Duration::from_millis);
        let retry = RetryPolicy {
            maximum_attempts: self.max_attempts.or(preset.maximum_attempts),
            initial_interval: millis(self.initial_interval_ms).or(preset.initial_interval),
            maximum_interval: millis(self.max_interval_ms).or(preset.maximum_interval),
            ..preset
        };
        let seconds = |seconds: Option<u64>| seconds.map(Duration::from_secs);
        let timeouts = Timeouts {
            step: seconds(self.step_timeout),
            heartbeat: seconds(self.heartbeat_timeout),
            execution: seconds(self.execution_timeout),
        };
        let mut settings = NamespaceSettings::default().retry_policy(retry).timeouts(timeouts);
        if let Some(text) = self.description {
            settings = settings.description(text);
        }
        if let Some(days) = self.retention_days {
            settings = settings.retention(DAY * days);
        }
        if let Some(most) = self.max_concurrent {
            settings = settings.max_concurrent(most);
        }
        if let Some(queue) = self.failure_handler_queue {
            settings = settings.failure_handler_queue(queue);
        }
        Ok(settings)
    }
}
