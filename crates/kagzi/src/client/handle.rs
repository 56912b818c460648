//! One run, seen from outside.

use std::time::Duration;

use futures_util::Stream;
use kagzi_proto::v1;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::client::Client;
use crate::client::outage::Outage;
use crate::client::run::{self, Reason, Run, RunStatus};
use crate::client::watch;
use crate::client::wire::rpc;
use crate::error::{Error, RunFailed, RunPaused};
use crate::history::{Event, RunHistory, StepAttempt, StepAttempts};
use crate::limits;
use crate::retry_policy::millis;

/// A run that was started.
///
/// ```no_run
/// # async fn follow(run: kagzi::client::RunHandle) -> anyhow::Result<()> {
/// use std::time::Duration;
///
/// println!("{} (there before: {})", run.run_id(), run.already_existed());
/// if !run.wait_for(Duration::from_secs(10)).await?.status.has_ended() {
///     println!("{}", run.explain().await?.sentence);
/// }
/// let receipt: String = run.result().await?;
/// let ended = run.finished().await?;
/// println!("{receipt}: {} after {} events", ended.status, run.events().await?.len());
/// for attempt in run.attempts().all().await? {
///     println!("{} {}", attempt.step, attempt.status);
/// }
/// println!("{:?}", run.attempt("charge", 0).await?.error);
/// println!("{:?}", run.history().newest_first().page("").await?.rows.first());
/// println!("{}", run.describe().await?.status);
/// # Ok(()) }
/// # async fn operate(run: kagzi::client::RunHandle) -> anyhow::Result<()> {
/// run.resume().await?;
/// run.retry().await?;
/// run.retry_from("charge").await?;
/// run.restart().await?;
/// run.restart_as("order-42-again").await?;
/// run.cancel("no longer wanted").await?;
/// run.terminate("it will never work").await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct RunHandle {
    client: Client,
    run_id: String,
    already_existed: bool,
}

/// Why a run is where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// For people.
    pub sentence: String,
    /// For programs; none when the run has ended.
    pub reason: Option<Reason>,
}

/// What became of an order to stop a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped {
    /// Where the run stands now.
    pub status: RunStatus,
    /// It had been stopped in this way before.
    pub already: bool,
}

/// What becomes of a wait for a run that is paused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pauses {
    /// It ends.
    Tell,
    /// It goes on.
    WaitFor,
}

impl RunHandle {
    pub(crate) fn new(client: Client, run_id: String, already_existed: bool) -> RunHandle {
        RunHandle { client, run_id, already_existed }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The run's id.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// A run with this business id was there before; no second one was started.
    pub fn already_existed(&self) -> bool {
        self.already_existed
    }

    /// Waits for the run to end and decodes its output. Waits as long as it takes; a server that cannot be
    /// reached for a minute is an error. A run that did not complete is [`Error::RunFailed`], and one that
    /// waits for a person is [`Error::RunPaused`]: it may never end. That is told at once or, where another
    /// server paused it, within half a minute. [`finished`](RunHandle::finished) waits for that person too.
    pub async fn result<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let run = self.wait(Pauses::Tell).await?;
        match RunStatus::from_wire(run.status) {
            RunStatus::Completed => run::decode(run.output.as_ref(), "the run's output"),
            RunStatus::Paused => Err(RunPaused::new(run.run_id, run.status_detail).into()),
            RunStatus::Pending
            | RunStatus::Running
            | RunStatus::Sleeping
            | RunStatus::Failed
            | RunStatus::Cancelled
            | RunStatus::TimedOut
            | RunStatus::Compensating
            // Boxed, like all that is large and rare: this future is part of whoever waits for a run.
            | RunStatus::Unknown => Err(Box::pin(self.failed(Run::from_proto(*run))).await.into()),
        }
    }

    /// Waits for the run to end, however it ends. While it is paused, this waits for whoever lets it go on.
    pub async fn finished(&self) -> Result<Run, Error> {
        Ok(Run::from_proto(*self.wait(Pauses::WaitFor).await?))
    }

    /// The run as it came, in its box: a [`Run`] is large, and who wants its output needs none.
    async fn wait(&self, pauses: Pauses) -> Result<Box<v1::WorkflowRun>, Error> {
        let mut outage = Outage::default();
        let mut warned = false;
        // Short at first: a run that is paused already is told only at the end of a poll.
        let mut poll = limits::WAIT_POLL_FIRST;
        loop {
            let answer = self.look(poll).await;
            poll = limits::WAIT_POLL;
            let run = match answer {
                Ok(run) => run,
                Err(error) => {
                    Box::pin(outage.bear(error)).await?;
                    continue;
                }
            };
            outage = Outage::default();
            let status = RunStatus::from_wire(run.status);
            // Whoever is asked will answer: that is no reason to give up on the run.
            let paused = status == RunStatus::Paused && Reason::from_wire(run.reason) != Some(Reason::Person);
            if status.has_ended() || (paused && pauses == Pauses::Tell) {
                return Ok(run);
            }
            if paused && !warned {
                warned = true;
                let why = &run.status_detail;
                let run = &self.run_id;
                tracing::warn!(%run, %why, "a run that is waited for is paused until a person lets it go on");
            }
        }
    }

    /// The run when it has ended, or as it is after this long.
    async fn look(&self, poll: Duration) -> Result<Box<v1::WorkflowRun>, Error> {
        match tokio::time::timeout(poll + limits::WAIT_SLACK, self.wait_once(poll)).await {
            Ok(Ok(answer)) => self.read(answer.workflow_run.unwrap_or_default()).await,
            Ok(Err(error)) => Err(error),
            // A server whose clock stands still, as that of a test does, lets a wait go on for ever; one that
            // is broken does not answer this either.
            Err(_) => Box::pin(self.client.find(self.run_id.clone())).await,
        }
    }

    async fn read(&self, mut run: Box<v1::WorkflowRun>) -> Result<Box<v1::WorkflowRun>, Error> {
        let decoded = self.client.codecs.decode_run(&mut run).await;
        decoded.map_err(|error| Error::undecodable("the run", &error))?;
        Ok(run)
    }

    /// All that the server knows about a failure. The step stands in the history only, so it is asked for; a
    /// history that cannot be read leaves it out.
    async fn failed(&self, run: Run) -> RunFailed {
        let attempts = run.attempts;
        let failed = RunFailed::new(run.run_id, run.status, run.error.unwrap_or_default());
        let last = self.history().kind("run_failed").newest_first().page_size(1);
        let step = match last.page("").await {
            Ok(page) => page.rows.into_iter().next().and_then(|event| {
                event.step.or_else(|| Some(event.detail.get("step")?.as_str()?.to_owned()))
            }),
            Err(_) => None,
        };
        RunFailed { attempts, step, ..failed }
    }

    async fn wait_once(&self, poll: Duration) -> Result<v1::WaitWorkflowRunResponse, Error> {
        let request = v1::WaitWorkflowRunRequest {
            run_id: self.run_id.clone(),
            namespace_id: self.client.namespace_id().to_owned(),
            timeout_ms: millis(poll),
            ..Default::default()
        };
        let server = self.client.server().await?;
        // In a box of its own, or it would be part of every future around it, and copied with each.
        let question = Box::pin(server.conversation.wait(request));
        self.client.ask_once("wait for a run", Duration::MAX, question).await
    }

    /// Ends the run as CANCELLED; a worker that executes it is told to stop.
    pub async fn cancel(&self, reason: impl Into<String>) -> Result<Stopped, Error> {
        let request = v1::CancelWorkflowRunRequest {
            run_id: self.run_id.clone(),
            namespace_id: self.client.namespace_id().to_owned(),
            reason: reason.into(),
            ..Default::default()
        };
        let answer = rpc!(self.client, Workflows.cancel_workflow_run, Safe, "cancel a run", request)?;
        Ok(Stopped { status: RunStatus::from_wire(answer.status), already: answer.already_cancelled })
    }

    /// Ends the run as FAILED at once, whatever its worker is doing; its failure handler is started.
    pub async fn terminate(&self, reason: impl Into<String>) -> Result<Stopped, Error> {
        let request = v1::TerminateWorkflowRunRequest {
            run_id: self.run_id.clone(),
            namespace_id: self.client.namespace_id().to_owned(),
            reason: reason.into(),
            ..Default::default()
        };
        let answer = rpc!(self.client, Workflows.terminate_workflow_run, Safe, "terminate a run", request)?;
        Ok(Stopped { status: RunStatus::from_wire(answer.status), already: answer.already_terminated })
    }

    /// Retries now: a waiting retry begins at once, and a run that failed goes on in place, from its failed
    /// step. Answers with the run's state.
    pub async fn retry(&self) -> Result<RunStatus, Error> {
        self.retry_from("").await
    }

    /// The same from an earlier failed step, after which nothing but failures was recorded. Empty: the step
    /// that failed the run.
    pub async fn retry_from(&self, step: &str) -> Result<RunStatus, Error> {
        let request = v1::RetryWorkflowRunRequest {
            run_id: self.run_id.clone(),
            namespace_id: self.client.namespace_id().to_owned(),
            from_step: step.to_owned(),
            request_id: Uuid::now_v7().to_string(),
            ..Default::default()
        };
        let answer = rpc!(self.client, Workflows.retry_workflow_run, Safe, "retry a run", request)?;
        Ok(RunStatus::from_wire(answer.status))
    }

    /// Starts a new run with the type, queue, input and options of this one.
    pub async fn restart(&self) -> Result<RunHandle, Error> {
        self.restart_as("").await
    }

    /// The same under a name of yours. Empty: none.
    pub async fn restart_as(&self, business_id: impl Into<String>) -> Result<RunHandle, Error> {
        let request = v1::RestartWorkflowRunRequest {
            run_id: self.run_id.clone(),
            namespace_id: self.client.namespace_id().to_owned(),
            business_id: business_id.into(),
            ..Default::default()
        };
        // A repeated restart would be a second new run.
        let started = rpc!(self.client, Workflows.restart_workflow_run, Unsafe, "restart a run", request)?;
        Ok(RunHandle::new(self.client.clone(), started.run_id, false))
    }

    /// Lets a paused run, or one that waits for a retry, go on now. Answers with the run's state.
    pub async fn resume(&self) -> Result<RunStatus, Error> {
        let request = v1::ResumeWorkflowRunRequest {
            run_id: self.run_id.clone(),
            namespace_id: self.client.namespace_id().to_owned(),
            request_id: Uuid::now_v7().to_string(),
            ..Default::default()
        };
        let answer = rpc!(self.client, Workflows.resume_workflow_run, Safe, "resume a run", request)?;
        Ok(RunStatus::from_wire(answer.status))
    }

    /// Says in one sentence why the run is where it is.
    pub async fn explain(&self) -> Result<Explanation, Error> {
        let request = v1::ExplainWorkflowRunRequest {
            run_id: self.run_id.clone(),
            namespace_id: self.client.namespace_id().to_owned(),
            ..Default::default()
        };
        let answer = rpc!(self.client, Workflows.explain_workflow_run, Safe, "explain a run", request)?;
        Ok(Explanation { sentence: answer.sentence, reason: Reason::from_wire(answer.reason) })
    }

    /// Reads one attempt of a step; 0 = the latest.
    pub async fn attempt(&self, step: impl Into<String>, attempt: u32) -> Result<StepAttempt, Error> {
        let request = v1::GetStepAttemptRequest {
            run_id: self.run_id.clone(),
            step_id: step.into(),
            namespace_id: self.client.namespace_id().to_owned(),
            attempt,
            ..Default::default()
        };
        let answer = rpc!(self.client, Workflows.get_step_attempt, Safe, "read a step attempt", request)?;
        let mut attempt = answer.step_attempt.unwrap_or_default();
        let decoded = self.client.codecs.decode_attempt(&mut attempt).await;
        decoded.map_err(|error| Error::undecodable("a step attempt", &error))?;
        Ok(StepAttempt::from_proto(attempt))
    }

    /// Reads the run's whole history, oldest event first.
    pub async fn events(&self) -> Result<Vec<Event>, Error> {
        self.history().all().await
    }

    /// The run's history, to be filtered and read from either end. Nothing is asked yet.
    pub fn history(&self) -> RunHistory {
        RunHistory::new(self.client.clone(), self.run_id.clone())
    }

    /// The run's history from its beginning, event by event as it happens. The stream ends with the run. It
    /// goes on where it was when the server restarts or another one takes over; a server that cannot be
    /// reached for a minute is an error.
    ///
    /// ```no_run
    /// # async fn follow(run: kagzi::client::RunHandle) -> anyhow::Result<()> {
    /// use futures_util::TryStreamExt;
    ///
    /// let mut events = std::pin::pin!(run.watch());
    /// while let Some(event) = events.try_next().await? {
    ///     println!("{} {}", event.sequence, event.kind);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn watch(&self) -> impl Stream<Item = Result<Event, Error>> + Send + 'static {
        self.watch_after(0)
    }

    /// The same behind this sequence number.
    ///
    /// ```no_run
    /// # async fn follow(run: kagzi::client::RunHandle) -> anyhow::Result<()> {
    /// let seen = run.events().await?;
    /// let later = run.watch_after(seen.last().map_or(0, |event| event.sequence));
    /// # drop(later);
    /// # Ok(()) }
    /// ```
    pub fn watch_after(&self, sequence: u64) -> impl Stream<Item = Result<Event, Error>> + Send + 'static {
        watch::history(self.client.clone(), self.run_id.clone(), sequence)
    }

    /// What the run's steps did, to be filtered and read. Nothing is asked yet.
    pub fn attempts(&self) -> StepAttempts {
        StepAttempts::new(self.client.clone(), self.run_id.clone())
    }

    /// Waits for so long, and reads the run as it is then: ended, or not.
    pub async fn wait_for(&self, time: Duration) -> Result<Run, Error> {
        Ok(Run::from_proto(*self.look(time).await?))
    }

    /// Reads the run as it is now.
    pub async fn describe(&self) -> Result<Run, Error> {
        self.client.get(self.run_id.clone()).await
    }
}
