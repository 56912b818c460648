use kagzi::NamespaceSettings;
use kagzi_proto::v1::{NamespaceValues, RetryPolicy, TimeoutConfig};

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
    initial_interval_ms: Option<i64>,
    /// Longest delay before a retry, in milliseconds.
    #[arg(long, value_name = "MS")]
    max_interval_ms: Option<i64>,
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

const DAY_MS: i64 = 24 * 3600 * 1000;

impl From<Values> for NamespaceSettings {
    fn from(values: Values) -> Self {
        let retry = RetryPolicy {
            maximum_attempts: values.max_attempts,
            initial_interval_ms: values.initial_interval_ms,
            maximum_interval_ms: values.max_interval_ms,
            preset: values.retry_preset.unwrap_or_default(),
            ..RetryPolicy::default()
        };
        let timeouts = TimeoutConfig {
            start_to_close_timeout_seconds: values.step_timeout,
            heartbeat_timeout_seconds: values.heartbeat_timeout,
            execution_timeout_seconds: values.execution_timeout,
        };
        let values = NamespaceValues {
            description: values.description,
            retry_policy: Some(retry),
            timeouts: Some(timeouts),
            retention_ms: values.retention_days.map(|days| i64::from(days) * DAY_MS),
            max_concurrent: values.max_concurrent,
            failure_handler_queue: values.failure_handler_queue,
        };
        NamespaceSettings::from(values)
    }
}
