use crate::moment;
use crate::output::{self, Format};
use crate::session::Session;
use crate::table::{self, Mood};
use jiff::Timestamp;
use kagzi_proto::v1::Namespace;
use serde::Serialize;

/// A namespace as `-o json` prints it. Fields are only ever added.
#[derive(Debug, Serialize)]
pub struct NamespaceView {
    pub name: String,
    pub description: String,
    pub status: &'static str,
    pub disabled_by: Option<String>,
    pub disabled_note: Option<String>,
    pub disabled_at: Option<Timestamp>,
    pub maximum_attempts: Option<i32>,
    pub initial_interval_ms: Option<i64>,
    pub maximum_interval_ms: Option<i64>,
    pub step_timeout_seconds: Option<u64>,
    pub heartbeat_timeout_seconds: Option<u64>,
    pub execution_timeout_seconds: Option<u64>,
    pub retention_ms: Option<i64>,
    pub max_concurrent: Option<u32>,
    pub failure_handler_queue: Option<String>,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
    pub version: u64,
    #[serde(skip)]
    pub retention: Option<String>,
    #[serde(skip)]
    pub mood: Mood,
}

impl From<Namespace> for NamespaceView {
    fn from(namespace: Namespace) -> Self {
        let said = |text: String| Some(text).filter(|text| !text.is_empty());
        let retry = namespace.retry_policy.unwrap_or_default();
        let timeouts = namespace.timeouts.unwrap_or_default();
        NamespaceView {
            name: namespace.namespace_id,
            description: namespace.description,
            status: if namespace.disabled { "DISABLED" } else { "ENABLED" },
            disabled_by: said(namespace.disabled_by),
            disabled_note: said(namespace.disabled_note),
            disabled_at: moment::from_wire(namespace.disabled_at),
            maximum_attempts: retry.maximum_attempts,
            initial_interval_ms: retry.initial_interval_ms,
            maximum_interval_ms: retry.maximum_interval_ms,
            step_timeout_seconds: timeouts.start_to_close_timeout_seconds,
            heartbeat_timeout_seconds: timeouts.heartbeat_timeout_seconds,
            execution_timeout_seconds: timeouts.execution_timeout_seconds,
            retention_ms: namespace.retention_ms,
            max_concurrent: namespace.max_concurrent,
            failure_handler_queue: said(namespace.failure_handler_queue),
            created_at: moment::from_wire(namespace.created_at),
            updated_at: moment::from_wire(namespace.updated_at),
            version: namespace.version,
            retention: namespace.retention_ms.map(days),
            mood: if namespace.disabled { Mood::Bad } else { Mood::Good },
        }
    }
}

impl NamespaceView {
    pub fn fields(&self, now: Timestamp) -> String {
        let time = |time: Option<Timestamp>| time.map(|time| moment::absolute_and_relative(time, now));
        let seconds = |seconds: Option<u64>| seconds.map(|seconds| format!("{seconds} s"));
        let millis = |ms: Option<i64>| ms.map(|ms| format!("{ms} ms"));
        table::text(table::of_fields([
            ("namespace", Some(self.name.clone())),
            ("status", Some(self.status.to_owned())),
            ("description", Some(self.description.clone()).filter(|text| !text.is_empty())),
            ("disabled by", self.disabled_by.clone()),
            ("disabled because", self.disabled_note.clone()),
            ("disabled", time(self.disabled_at)),
            ("max concurrent", self.max_concurrent.map(|most| most.to_string())),
            ("max attempts", self.maximum_attempts.map(|most| most.to_string())),
            ("initial interval", millis(self.initial_interval_ms)),
            ("max interval", millis(self.maximum_interval_ms)),
            ("step timeout", seconds(self.step_timeout_seconds)),
            ("heartbeat timeout", seconds(self.heartbeat_timeout_seconds)),
            ("execution timeout", seconds(self.execution_timeout_seconds)),
            ("retention", self.retention.clone()),
            ("failure handler", self.failure_handler_queue.as_ref().map(|queue| format!("on queue {queue}"))),
            ("created", time(self.created_at)),
            ("updated", time(self.updated_at)),
        ]))
    }
}

/// Prints one namespace in the format that was asked for.
pub fn print(namespace: Namespace, session: &Session) -> anyhow::Result<()> {
    let view = NamespaceView::from(namespace);
    match session.format {
        Format::Json => output::print_json(&view),
        Format::Table => output::print(&view.fields(moment::now())),
    }
}

fn days(ms: i64) -> String {
    const HOUR_MS: i64 = 3600 * 1000;
    match ms / HOUR_MS {
        hours if hours >= 24 && hours % 24 == 0 => format!("{} days", hours / 24),
        hours => format!("{hours} h"),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::run::sample_now;
    use kagzi_proto::v1::{RetryPolicy, TimeoutConfig};

    pub fn sample() -> Namespace {
        let at = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        Namespace {
            namespace_id: "shop".into(),
            description: "orders and refunds".into(),
            disabled: true,
            disabled_by: "ada".into(),
            disabled_note: "unpaid".into(),
            disabled_at: at(1_794_744_000),
            retry_policy: Some(RetryPolicy { maximum_attempts: Some(3), ..RetryPolicy::default() }),
            timeouts: Some(TimeoutConfig {
                execution_timeout_seconds: Some(3600),
                ..TimeoutConfig::default()
            }),
            retention_ms: Some(30 * 24 * 3600 * 1000),
            max_concurrent: Some(50),
            failure_handler_queue: "alerts".into(),
            created_at: at(1_794_740_000),
            updated_at: at(1_794_744_000),
            version: 4,
        }
    }

    #[test]
    fn a_namespace_as_json() {
        insta::assert_snapshot!(output::json(&NamespaceView::from(sample())));
    }

    #[test]
    fn a_namespace_as_fields() {
        insta::assert_snapshot!(NamespaceView::from(sample()).fields(sample_now()));
    }
}
