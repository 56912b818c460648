//! Plays the owner of the stream: takes what a run says, one message at a time, and answers as told.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kagzi_proto::v1::{self, StepStatus, report};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::payload;
use crate::run::context::WorkflowContext;
use crate::run::executor;
use crate::run::uplink::{Outgoing, Submission, Uplink, Verdict};
use crate::worker::handlers::Handlers;

pub(super) struct ScriptedServer {
    inbox: mpsc::Receiver<Outgoing>,
    /// An end that came with results: they are handed out first, one at a time, as the store records them.
    unfolding: Option<(VecDeque<v1::StepRecorded>, Submission)>,
    pub(super) task: JoinHandle<()>,
}

/// An assignment of a run of type `test`, with this input and journal.
pub(super) fn assign(input: &str, journal: Vec<v1::JournalEntry>) -> v1::Assign {
    v1::Assign {
        lease: Some(v1::LeaseRef { run_id: "r1".to_owned(), epoch: 1 }),
        workflow_type: "test".to_owned(),
        business_id: "order-42".to_owned(),
        namespace_id: "default".to_owned(),
        input: Some(v1::Payload { data: input.to_owned().into(), content_type: String::new() }),
        journal,
        ..Default::default()
    }
}

pub(super) fn entry(path: &str, position: u32, status: StepStatus) -> v1::JournalEntry {
    let step = Some(v1::StepRef { path: path.to_owned(), position });
    v1::JournalEntry { step, status: status.into(), attempts: 1, ..Default::default() }
}

pub(super) fn completed(path: &str, position: u32, result: &str) -> v1::JournalEntry {
    let result = v1::Payload { data: result.to_owned().into(), content_type: String::new() };
    v1::JournalEntry { result: Some(result), ..entry(path, position, StepStatus::Completed) }
}

impl ScriptedServer {
    pub(super) fn execute<F, Fut>(assign: v1::Assign, function: F) -> ScriptedServer
    where
        F: Fn(WorkflowContext, u64) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = anyhow::Result<u64>> + Send + 'static,
    {
        ScriptedServer::execute_with_payload_limit(assign, 0, function)
    }

    pub(super) fn execute_with_payload_limit<F, Fut>(
        assign: v1::Assign,
        bytes_max: u64,
        f: F,
    ) -> ScriptedServer
    where
        F: Fn(WorkflowContext, u64) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = anyhow::Result<u64>> + Send + 'static,
    {
        let mut handlers = Handlers::default();
        handlers.insert("test", f);
        let (uplink, inbox) = Uplink::new(64);
        uplink.set_payload_bytes_max(bytes_max);
        let (handlers, span) = (Arc::new(handlers), tracing::Span::none());
        let task = tokio::spawn(executor::execute(Box::new(assign), handlers, uplink, span));
        ScriptedServer { inbox, unfolding: None, task }
    }

    /// The next message of any kind. A run that never speaks again fails the test after a virtual day.
    pub(super) async fn next_message(&mut self) -> Outgoing {
        let day = Duration::from_secs(24 * 3600);
        let message = tokio::time::timeout(day, self.inbox.recv()).await;
        message.expect("the run has nothing to say").expect("the run is over")
    }

    pub(super) async fn next_report(&mut self) -> Submission {
        loop {
            if let Outgoing::Report(submission) = self.next_message().await {
                return *submission;
            }
        }
    }

    /// Takes the next report, answers it, and hands out what it said.
    pub(super) async fn answer(&mut self, verdict: Verdict) -> report::Body {
        if self.unfolding.is_none() {
            let mut report = self.next_report().await;
            let steps = match &mut report.body {
                report::Body::RunCompleted(completed) => std::mem::take(&mut completed.steps).into(),
                report::Body::StepsRecorded(recorded) => std::mem::take(&mut recorded.steps).into(),
                _ => VecDeque::new(),
            };
            self.unfolding = Some((steps, report));
        }
        if let Some((steps, _)) = &mut self.unfolding
            && let Some(step) = steps.pop_front()
        {
            let last_of_several = steps.is_empty() && self.is_unfolding_results();
            if last_of_several && let Some((_, several)) = self.unfolding.take() {
                drop(several.verdict.map(|waiting| waiting.send(verdict)));
            }
            return report::Body::StepRecorded(step);
        }
        let (_, report) = self.unfolding.take().expect("filled above");
        let Submission { body, verdict: waiting, .. } = report;
        let heard = waiting.is_some_and(|waiting| waiting.send(verdict).is_ok());
        let nobody_waits = matches!(body, report::Body::StepProgressed(_));
        assert!(heard || nobody_waits, "the run waits for the verdict");
        body
    }

    fn is_unfolding_results(&self) -> bool {
        let unfolding = self.unfolding.as_ref();
        unfolding.is_some_and(|(_, report)| matches!(report.body, report::Body::StepsRecorded(_)))
    }

    pub(super) async fn commit(&mut self) -> report::Body {
        self.answer(Verdict::Committed).await
    }

    pub(super) fn is_silent(&self) -> bool {
        self.inbox.is_empty()
    }

    /// Commits the end of the run and checks that its task ends with it, saying nothing more.
    pub(super) async fn commit_end(mut self) -> report::Body {
        let end = self.commit().await;
        self.task.await.expect("the task of a run does not die");
        assert!(self.inbox.recv().await.is_none(), "the run spoke after its end");
        end
    }
}

/// Path, position, attempt and JSON of a recorded step.
pub(super) fn recorded(body: report::Body) -> (String, u32, u32, String) {
    let report::Body::StepRecorded(recorded) = body else { panic!("not a recorded step: {body:?}") };
    let step = recorded.step.unwrap();
    let json = String::from_utf8(recorded.result.unwrap().data.to_vec()).unwrap();
    (step.path, step.position, recorded.attempt, json)
}

pub(super) fn failed_step(body: report::Body) -> (v1::StepFailed, v1::Failure) {
    let report::Body::StepFailed(mut failed) = body else { panic!("not a failed step: {body:?}") };
    let failure = failed.failure.take().unwrap();
    (*failed, failure)
}

pub(super) fn run_output(body: report::Body) -> u64 {
    let report::Body::RunCompleted(completed) = body else { panic!("not completed: {body:?}") };
    payload::decode(completed.output.as_ref()).unwrap()
}

pub(super) fn run_failure(body: report::Body) -> v1::Failure {
    let report::Body::RunFailed(failed) = body else { panic!("not failed: {body:?}") };
    failed.failure.unwrap()
}

pub(super) fn blocked_message(body: report::Body) -> String {
    let report::Body::RunBlocked(blocked) = body else { panic!("not blocked: {body:?}") };
    blocked.message
}

/// What a parked run waits for.
pub(super) fn parked_for(body: report::Body) -> Vec<String> {
    let report::Body::RunParked(parked) = body else { panic!("not parked: {body:?}") };
    parked.waits
}

pub(super) fn assert_parked(body: report::Body) {
    assert!(matches!(body, report::Body::RunParked(_)), "not parked: {body:?}");
}

/// A retry after this many seconds.
pub(super) fn retry_in(seconds: u64) -> Verdict {
    Verdict::Retry { delay: Duration::from_secs(seconds), attempt: 1 }
}
