use super::{label, status};
use crate::moment;
use crate::payload::{PayloadView, readable};
use crate::table::{self, Mood};
use jiff::Timestamp;
use kagzi_proto::v1::{Failure, WorkflowRun};
use serde::Serialize;
use std::collections::BTreeMap;

/// A run as `-o json` prints it. Fields are only ever added.
#[derive(Debug, Serialize)]
pub struct RunView {
    pub run_id: String,
    pub business_id: String,
    pub namespace: String,
    pub workflow_type: String,
    pub task_queue: String,
    pub status: &'static str,
    /// Why it will move again: ready, leased, timer, retry or paused; null when it has ended.
    pub reason: Option<String>,
    pub attempts: u32,
    pub dispatch_count: u32,
    pub locked_by: Option<String>,
    pub locked_until: Option<Timestamp>,
    pub lease_epoch: u64,
    pub wake_up_at: Option<Timestamp>,
    pub created_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub deadline_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_id: Option<String>,
    /// The nominal time of a scheduled run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<Timestamp>,
    /// Left out by `run list`, which does not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<PayloadView>,
    pub output: Option<PayloadView>,
    pub error: Option<FailureView>,
    /// Sorted by name, so that two prints of one run are equal.
    pub labels: BTreeMap<String, String>,
    #[serde(skip)]
    pub mood: Mood,
}

#[derive(Debug, Serialize)]
pub struct FailureView {
    pub code: String,
    pub message: String,
    pub non_retryable: bool,
    pub details: Option<PayloadView>,
}

impl From<WorkflowRun> for RunView {
    fn from(run: WorkflowRun) -> Self {
        let status = run.status();
        RunView {
            run_id: run.run_id,
            business_id: run.business_id,
            namespace: run.namespace_id,
            workflow_type: run.workflow_type,
            task_queue: run.task_queue,
            status: status::word(status),
            reason: some_text(run.reason),
            schedule_id: some_text(run.schedule_id),
            scheduled_at: moment::from_wire(run.scheduled_at),
            attempts: run.attempts,
            dispatch_count: run.dispatch_count,
            locked_by: some_text(run.locked_by),
            locked_until: moment::from_wire(run.locked_until),
            lease_epoch: run.lease_epoch,
            wake_up_at: moment::from_wire(run.wake_up_at),
            created_at: moment::from_wire(run.created_at),
            started_at: moment::from_wire(run.started_at),
            finished_at: moment::from_wire(run.finished_at),
            deadline_at: moment::from_wire(run.deadline_at),
            input: PayloadView::from_wire(run.input),
            output: PayloadView::from_wire(run.output),
            error: FailureView::from_wire(run.error),
            labels: run.labels.into_iter().collect(),
            mood: status::mood(status),
        }
    }
}

impl RunView {
    pub fn fields(&self, now: Timestamp) -> String {
        let time = |time: Option<Timestamp>| time.map(|time| moment::absolute_and_relative(time, now));
        table::text(table::of_fields([
            ("run", Some(self.run_id.clone())),
            ("business id", Some(self.business_id.clone())),
            ("type", Some(self.workflow_type.clone())),
            ("queue", Some(self.task_queue.clone())),
            ("namespace", Some(self.namespace.clone())),
            ("status", Some(self.status.to_owned())),
            ("reason", self.reason.clone()),
            ("schedule", self.schedule_id.clone()),
            ("scheduled for", self.scheduled_at.map(|at| at.to_string())),
            ("attempts", Some(self.attempts.to_string())),
            ("dispatches", Some(self.dispatch_count.to_string())),
            ("locked by", self.locked_by.clone()),
            ("locked until", time(self.locked_until)),
            ("wakes up", time(self.wake_up_at)),
            ("created", time(self.created_at)),
            ("started", time(self.started_at)),
            ("finished", time(self.finished_at)),
            ("deadline", time(self.deadline_at)),
            ("labels", some_text(label::text(&self.labels))),
            ("input", self.input.as_ref().map(PayloadView::text)),
            ("output", self.output.as_ref().map(PayloadView::text)),
            ("error", self.error.as_ref().map(FailureView::text)),
        ]))
    }
}

impl FailureView {
    pub fn from_wire(failure: Option<Failure>) -> Option<Self> {
        failure.map(|failure| FailureView {
            code: failure.code,
            message: failure.message,
            non_retryable: failure.non_retryable,
            details: PayloadView::from_wire(failure.details),
        })
    }

    pub fn text(&self) -> String {
        match self.code.as_str() {
            "" => readable(&self.message),
            code => format!("{code}: {}", readable(&self.message)),
        }
    }
}

/// The wire says "nothing" with an empty string; JSON has null for that.
pub fn some_text(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::{output, payload};
    use kagzi_proto::v1::WorkflowStatus;

    pub fn sample_run() -> WorkflowRun {
        let at = |seconds| Some(prost_types::Timestamp { seconds, nanos: 250_000_000 });
        WorkflowRun {
            run_id: "0199f3c2-7d1a-7c4e-9b1f-5a2e8d7c6b3a".into(),
            business_id: "order-1001".into(),
            namespace_id: "default".into(),
            workflow_type: "order".into(),
            task_queue: "orders".into(),
            status: WorkflowStatus::Running.into(),
            input: Some(payload::json(r#"{"order":"A-1001","amount_cents":4200}"#)),
            attempts: 1,
            dispatch_count: 2,
            locked_by: "0199f3c2-0000-7000-8000-000000000001".into(),
            locked_until: at(1_794_744_090),
            lease_epoch: 2,
            created_at: at(1_794_744_000),
            started_at: at(1_794_744_001),
            reason: "leased".into(),
            labels: [("tenant".into(), "acme".into()), ("stage".into(), "charged".into())].into(),
            ..WorkflowRun::default()
        }
    }

    pub fn sample_now() -> Timestamp {
        Timestamp::from_second(1_794_744_060).unwrap()
    }

    #[test]
    fn a_running_run_as_json() {
        insta::assert_snapshot!(output::json(&RunView::from(sample_run())));
    }

    #[test]
    fn a_running_run_as_fields() {
        insta::assert_snapshot!(RunView::from(sample_run()).fields(sample_now()));
    }

    #[test]
    fn a_failed_run_names_its_error() {
        let error = Failure {
            code: "CARD_DECLINED".into(),
            message: "the card was declined".into(),
            non_retryable: true,
            ..Failure::default()
        };
        let failed = WorkflowRun {
            status: WorkflowStatus::Failed.into(),
            error: Some(error),
            ..WorkflowRun::default()
        };

        let view = RunView::from(failed);

        assert_eq!(view.status, "FAILED");
        assert_eq!(view.error.unwrap().text(), "CARD_DECLINED: the card was declined");
    }
}
