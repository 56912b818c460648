//! What the engine publishes when a run ends badly.

use serde::Serialize;

use super::{ENGINE_TOPIC, PublishEvent, Topic, TopicKey, WORKFLOW_FAILED};
use crate::{Name, Payload, Run, RunId, State, TOPIC_LABEL, limits::EVENT_KEEP_MS_STANDARD, moment};

/// The engine's own words: no codec has encoded them. The contract has the same text.
const CONTENT_TYPE: &str = "application/vnd.kagzi.workflow-failed+json";

/// What the event says, as JSON: what a failure handler is given too, without the input.
#[derive(Serialize)]
struct Failed<'a> {
    failed_run_id: RunId,
    namespace_id: &'a Name,
    workflow_type: &'a Name,
    task_queue: &'a Name,
    error: &'a str,
    attempts: u32,
    started_at: Option<String>,
    failed_at: Option<String>,
    error_code: &'a Name,
    status: String,
    business_id: String,
}

/// The topic on which the bad ends of such runs are published.
pub fn failed_topic(run: &Run) -> TopicKey {
    let topic = Topic::new(WORKFLOW_FAILED, run.workflow_type.clone());
    TopicKey { namespace: run.namespace.clone(), topic }
}

/// The event that a run has ended as FAILED or TIMED_OUT; none for every other state, and for runs that were
/// started because another one had failed: they would start each other for ever. Its id says where in its
/// history it ended: a run that goes on and fails again is another event.
pub fn failed_event(run: &Run, last_seq: u64) -> Option<PublishEvent> {
    let (State::Failed { failure } | State::TimedOut { failure }) = &run.state else { return None };
    if run.labels.get(TOPIC_LABEL).is_some_and(|topic| topic.starts_with(ENGINE_TOPIC)) {
        return None;
    }
    let failed = Failed {
        failed_run_id: run.id,
        namespace_id: &run.namespace,
        workflow_type: &run.workflow_type,
        task_queue: &run.task_queue,
        error: &failure.message,
        attempts: run.attempts,
        started_at: run.started_at.map(moment),
        failed_at: run.finished_at.map(moment),
        error_code: &failure.code,
        status: format!("WORKFLOW_STATUS_{}", run.state.status().name()),
        business_id: run.shown_id(),
    };
    let body = serde_json::to_vec(&failed).expect("our own types are always valid JSON");
    Some(PublishEvent {
        key: failed_topic(run),
        id: Name::from(format!("{}:{last_seq}", run.id)),
        payload: Payload { data: body.into(), content_type: CONTENT_TYPE.into() },
        keep_ms: EVENT_KEEP_MS_STANDARD,
    })
}
