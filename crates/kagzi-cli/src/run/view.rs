use super::{label, status};
use crate::payload::{PayloadView, readable};
use crate::table::{self, Mood};
use crate::time_text;
use jiff::Timestamp;
use kagzi::client::Run;
use kagzi::workflow::StepFailure;
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
    /// Of a run that continued in place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    pub locked_by: Option<String>,
    pub locked_until: Option<Timestamp>,
    pub lease_epoch: u64,
    pub wake_up_at: Option<Timestamp>,
    pub created_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub deadline_at: Option<Timestamp>,
    /// For whom it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// It was not to start before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Timestamp>,
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

impl From<Run> for RunView {
    fn from(run: Run) -> Self {
        let status = run.status;
        RunView {
            // A run without a name of its own goes by its id.
            business_id: run.business_id.unwrap_or_else(|| run.run_id.clone()),
            run_id: run.run_id,
            namespace: run.namespace,
            workflow_type: run.workflow_type,
            task_queue: run.task_queue,
            status: status.name(),
            reason: run.reason.map(|reason| reason.name().to_owned()),
            user_id: run.user_id,
            start_at: time_text::of(run.start_at),
            schedule_id: run.schedule_id,
            scheduled_at: time_text::of(run.scheduled_at),
            attempts: run.attempts,
            dispatch_count: run.dispatch_count,
            generation: Some(run.generation).filter(|generation| *generation > 1),
            locked_by: run.worker_id,
            locked_until: time_text::of(run.leased_until),
            lease_epoch: run.lease_epoch,
            wake_up_at: time_text::of(run.wake_up_at),
            created_at: time_text::of(Some(run.created_at)),
            started_at: time_text::of(run.started_at),
            finished_at: time_text::of(run.finished_at),
            deadline_at: time_text::of(run.deadline_at),
            input: PayloadView::of(run.input),
            output: PayloadView::of(run.output),
            error: run.error.map(FailureView::from),
            labels: run.labels,
            mood: status::mood(status),
        }
    }
}

impl RunView {
    pub fn fields(&self, now: Timestamp) -> String {
        let time = |time: Option<Timestamp>| time.map(|time| time_text::absolute_and_relative(time, now));
        table::text(table::of_fields([
            ("run", Some(self.run_id.clone())),
            ("business id", Some(self.business_id.clone())),
            ("type", Some(self.workflow_type.clone())),
            ("queue", Some(self.task_queue.clone())),
            ("namespace", Some(self.namespace.clone())),
            ("status", Some(self.status.to_owned())),
            ("reason", self.reason.clone()),
            ("user", self.user_id.clone()),
            ("not before", self.start_at.map(|at| at.to_string())),
            ("schedule", self.schedule_id.clone()),
            ("scheduled for", self.scheduled_at.map(|at| at.to_string())),
            ("attempts", Some(self.attempts.to_string())),
            ("dispatches", Some(self.dispatch_count.to_string())),
            ("generation", self.generation.map(|generation| generation.to_string())),
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

impl From<StepFailure> for FailureView {
    fn from(failure: StepFailure) -> Self {
        FailureView {
            code: failure.code,
            message: failure.message,
            non_retryable: failure.non_retryable,
            details: failure.details.and_then(|details| PayloadView::of_details(&details)),
        }
    }
}

impl FailureView {
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
    use kagzi::client::{Reason, RunStatus};
    use std::time::{Duration, SystemTime};

    pub fn sample_run() -> Run {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(250);
        let mut run = Run::default();
        run.run_id = "0199f3c2-7d1a-7c4e-9b1f-5a2e8d7c6b3a".into();
        run.business_id = Some("order-1001".into());
        run.namespace = "default".into();
        (run.workflow_type, run.task_queue) = ("order".into(), "orders".into());
        (run.status, run.reason) = (RunStatus::Running, Some(Reason::Leased));
        run.input = Some(payload::json(r#"{"order":"A-1001","amount_cents":4200}"#));
        (run.attempts, run.dispatch_count, run.lease_epoch) = (1, 2, 2);
        run.worker_id = Some("0199f3c2-0000-7000-8000-000000000001".into());
        run.leased_until = Some(at(1_794_744_090));
        (run.created_at, run.started_at) = (at(1_794_744_000), Some(at(1_794_744_001)));
        run.labels = [("tenant".into(), "acme".into()), ("stage".into(), "charged".into())].into();
        run
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
        let error = StepFailure::new("CARD_DECLINED", "the card was declined").non_retryable();
        let mut failed = Run::default();
        (failed.status, failed.error) = (RunStatus::Failed, Some(error));

        let view = RunView::from(failed);

        assert_eq!(view.status, "FAILED");
        assert_eq!(view.error.unwrap().text(), "CARD_DECLINED: the card was declined");
    }
}
