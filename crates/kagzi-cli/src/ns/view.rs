use crate::output::{self, Format};
use crate::session::Session;
use crate::table::{self, Mood};
use crate::time_text;
use jiff::Timestamp;
use kagzi::admin::Namespace;
use serde::Serialize;
use std::time::Duration;

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
        let (retry, timeouts) = (namespace.retry_policy, namespace.timeouts);
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        NamespaceView {
            name: namespace.namespace_id,
            description: namespace.description,
            status: if namespace.disabled { "DISABLED" } else { "ENABLED" },
            disabled_by: namespace.disabled_by,
            disabled_note: said(namespace.disabled_note),
            disabled_at: time_text::of(namespace.disabled_at),
            maximum_attempts: retry.maximum_attempts,
            initial_interval_ms: retry.initial_interval.map(millis),
            maximum_interval_ms: retry.maximum_interval.map(millis),
            step_timeout_seconds: timeouts.step.map(|time| time.as_secs()),
            heartbeat_timeout_seconds: timeouts.heartbeat.map(|time| time.as_secs()),
            execution_timeout_seconds: timeouts.execution.map(|time| time.as_secs()),
            retention_ms: namespace.retention.map(millis),
            max_concurrent: namespace.max_concurrent,
            failure_handler_queue: namespace.failure_handler_queue,
            created_at: time_text::of(Some(namespace.created_at)),
            updated_at: time_text::of(namespace.updated_at),
            version: namespace.version,
            retention: namespace.retention.map(millis).map(days),
            mood: if namespace.disabled { Mood::Bad } else { Mood::Good },
        }
    }
}

impl NamespaceView {
    pub fn fields(&self, now: Timestamp) -> String {
        let time = |time: Option<Timestamp>| time.map(|time| time_text::absolute_and_relative(time, now));
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
        Format::Table => output::print(&view.fields(time_text::now())),
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
    use kagzi::RetryPolicy;
    use kagzi::client::Timeouts;
    use std::time::SystemTime;

    pub fn sample() -> Namespace {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let mut namespace = Namespace::default();
        namespace.namespace_id = "shop".into();
        namespace.description = "orders and refunds".into();
        namespace.disabled = true;
        namespace.disabled_by = Some("ada".into());
        namespace.disabled_note = "unpaid".into();
        namespace.disabled_at = Some(at(1_794_744_000));
        namespace.retry_policy = RetryPolicy { maximum_attempts: Some(3), ..RetryPolicy::default() };
        namespace.timeouts = Timeouts { execution: Some(Duration::from_secs(3600)), ..Timeouts::default() };
        namespace.retention = Some(Duration::from_secs(30 * 24 * 3600));
        namespace.max_concurrent = Some(50);
        namespace.failure_handler_queue = Some("alerts".into());
        namespace.created_at = at(1_794_740_000);
        namespace.updated_at = Some(at(1_794_744_000));
        namespace.version = 4;
        namespace
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
