//! The input of a failure handler: which run failed, how, and with which input.

use std::time::SystemTime;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use kagzi_proto::v1;
use prost_types::Timestamp;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::client::RunStatus;
use crate::error::Error;

/// A run has failed. Failure handlers are workflows that take this as their input; see
/// [`StartBuilder::on_failure`](crate::client::StartBuilder::on_failure) and
/// [`Worker::register_failure_handler`](crate::Worker::register_failure_handler).
///
/// ```
/// # use kagzi::{WorkflowContext, workflow::WorkflowFailedEvent};
/// async fn repair(_: WorkflowContext, failed: WorkflowFailedEvent) -> anyhow::Result<String> {
///     match failed.input::<u64>() {
///         Ok(cents) => Ok(format!("{cents} cents were not charged: {}", failed.error)),
///         Err(_) => Ok(format!("{} bytes of something else", failed.input_bytes().len())),
///     }
/// }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct WorkflowFailedEvent {
    /// The run that failed.
    pub failed_run_id: String,
    /// Its namespace.
    pub namespace_id: String,
    /// Its type.
    pub workflow_type: String,
    /// Its queue.
    pub task_queue: String,
    /// What its last execution said, for people.
    pub error: String,
    /// What it was started with, as it came.
    #[serde(with = "base64_text")]
    pub original_input: Bytes,
    /// The content type of that input; empty means JSON.
    pub original_content_type: String,
    /// Executions that failed.
    pub attempts: i32,
    /// When it was first executed; never, if it failed before.
    #[serde(with = "rfc3339")]
    pub started_at: Option<SystemTime>,
    /// When it failed.
    #[serde(with = "rfc3339")]
    pub failed_at: Option<SystemTime>,
    /// The same for programs, e.g. `CARD_DECLINED` or `TIMED_OUT`.
    pub error_code: String,
    /// Failed, timed out, or paused for one that was quarantined.
    #[serde(with = "status")]
    pub status: RunStatus,
    /// Your name for the run.
    pub business_id: String,
}

impl WorkflowFailedEvent {
    /// What the failed run was started with.
    pub fn input<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let input: &[u8] = if self.original_input.is_empty() { b"null" } else { &self.original_input };
        serde_json::from_slice(input)
            .map_err(|error| Error::Decode { what: "the failed run's input", message: error.to_string() })
    }

    /// The same as it came, for inputs that are no JSON.
    pub fn input_bytes(&self) -> &Bytes {
        &self.original_input
    }
}

/// By its name in the contract, as protobuf's JSON has it.
mod status {
    use super::*;

    pub(super) fn serialize<S: Serializer>(status: &RunStatus, to: S) -> Result<S::Ok, S::Error> {
        let known = v1::WorkflowStatus::from_word(status.name()).unwrap_or_default();
        to.serialize_str(known.as_str_name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<RunStatus, D::Error> {
        let name = String::deserialize(from)?;
        let known = v1::WorkflowStatus::from_str_name(&name).unwrap_or_default();
        Ok(RunStatus::from_wire(known.into()))
    }
}

mod base64_text {
    use super::*;

    pub(super) fn serialize<S: Serializer>(bytes: &Bytes, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
        let text = String::deserialize(from)?;
        BASE64_STANDARD.decode(text).map(Bytes::from).map_err(D::Error::custom)
    }
}

mod rfc3339 {
    use super::*;

    pub(super) fn serialize<S: Serializer>(at: &Option<SystemTime>, to: S) -> Result<S::Ok, S::Error> {
        match at {
            Some(at) => to.serialize_str(&Timestamp::from(*at).to_string()),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SystemTime>, D::Error> {
        let Some(text) = Option::<String>::deserialize(from)?.filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let at: Timestamp = text.parse().map_err(D::Error::custom)?;
        SystemTime::try_from(at).map(Some).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SENT: &str = r#"{
        "failed_run_id": "r1", "namespace_id": "default", "workflow_type": "order", "task_queue": "orders",
        "error": "card declined", "original_input": "eyJjZW50cyI6NDUwfQ==", "attempts": 3,
        "started_at": "1994-11-06T08:49:37Z", "failed_at": "1994-11-06T08:49:38.500Z",
        "error_code": "CARD_DECLINED", "status": "WORKFLOW_STATUS_FAILED", "business_id": "order-42",
        "from_a_newer_server": {"any": "thing"}
    }"#;

    #[test]
    fn an_event_of_the_server_is_read_and_unknown_fields_are_ignored() {
        let event: WorkflowFailedEvent = serde_json::from_str(SENT).unwrap();

        assert_eq!((event.workflow_type.as_str(), event.attempts), ("order", 3));
        assert_eq!(event.status, RunStatus::Failed);
        assert_eq!(event.input_bytes(), r#"{"cents":450}"#);
        assert_eq!(event.input::<serde_json::Value>().unwrap()["cents"], 450);
        assert!(event.input::<u32>().is_err());
        let started = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(event.started_at, Some(started));
        assert_eq!(event.failed_at, Some(started + Duration::from_millis(1500)));
    }

    #[test]
    fn an_event_can_be_a_steps_result() {
        let event: WorkflowFailedEvent = serde_json::from_str(SENT).unwrap();

        let json = serde_json::to_string(&event).unwrap();

        assert_eq!(serde_json::from_str::<WorkflowFailedEvent>(&json).unwrap(), event);
    }

    #[test]
    fn a_run_that_never_began_has_no_start_and_no_input_reads_as_null() {
        let event: WorkflowFailedEvent = serde_json::from_str(r#"{"started_at": null}"#).unwrap();

        assert_eq!(event.started_at, None);
        assert_eq!(event.input::<Option<u32>>().unwrap(), None);
    }

    #[test]
    fn broken_bytes_and_times_are_told() {
        assert!(serde_json::from_str::<WorkflowFailedEvent>(r#"{"original_input": "%"}"#).is_err());
        assert!(serde_json::from_str::<WorkflowFailedEvent>(r#"{"failed_at": "noon"}"#).is_err());
    }
}
