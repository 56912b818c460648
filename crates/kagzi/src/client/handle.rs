//! One run, seen from outside.

use kagzi_proto::v1::{self, RunEvent, WorkflowRun, WorkflowStatus};
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use uuid::Uuid;

use crate::client::attempts::StepAttempts;
use crate::client::history::RunHistory;
use crate::client::{Client, Repeat, Server};
use crate::error::{Error, RunFailed};
use crate::reconnect_delay::ReconnectDelay;
use crate::retry_policy::millis;
use crate::{limits, payload};

/// A run that was started.
#[derive(Clone)]
pub struct RunHandle {
    client: Client,
    run_id: String,
    already_existed: bool,
}

impl RunHandle {
    pub(crate) fn new(client: Client, run_id: String, already_existed: bool) -> RunHandle {
        RunHandle { client, run_id, already_existed }
    }

    /// The run's id.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// A run with this business id was there before; no second one was started.
    pub fn already_existed(&self) -> bool {
        self.already_existed
    }

    /// Waits for the run to end and decodes its output. A run that did not complete is
    /// [`Error::RunFailed`]. Waits as long as it takes; a server that cannot be reached for a minute is
    /// an error.
    pub async fn result<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let run = self.finished().await?;
        if run.status() == WorkflowStatus::Completed {
            return payload::decode(run.output.as_ref())
                .map_err(|error| Error::undecodable("the run's output", &error));
        }
        let status = run.status();
        let error = run.error.unwrap_or_default();
        Err(RunFailed { run_id: run.run_id, status, code: error.code, message: error.message }.into())
    }

    /// Waits for the run to end, however it ends.
    pub async fn finished(&self) -> Result<WorkflowRun, Error> {
        let mut outage = Outage::default();
        loop {
            match self.wait_once().await {
                Ok(v1::WaitWorkflowRunResponse { finished: true, workflow_run }) => {
                    let mut run = workflow_run.unwrap_or_default();
                    let decoded = self.client.codecs.decode_run(&mut run);
                    return decoded.map(|()| *run).map_err(|error| Error::undecodable("the run", &error));
                }
                Ok(v1::WaitWorkflowRunResponse { finished: false, .. }) => outage = Outage::default(),
                Err(error) => outage.bear(error).await?,
            }
        }
    }

    async fn wait_once(&self) -> Result<v1::WaitWorkflowRunResponse, Error> {
        let request = v1::WaitWorkflowRunRequest {
            run_id: self.run_id.clone(),
            namespace_id: self.client.namespace_id().to_owned(),
            timeout_ms: millis(limits::WAIT_POLL),
        };
        let wait = |server: Server| {
            let request = request.clone();
            async move { server.conversation.wait(request).await }
        };
        self.client.ask("wait for a run", Repeat::Safe, wait).await
    }

    /// Ends the run as CANCELLED; a worker that executes it is told to stop.
    pub async fn cancel(&self, reason: impl Into<String>) -> Result<(), Error> {
        let request = v1::CancelWorkflowRunRequest {
            run_id: self.run_id.clone(),
            namespace_id: self.client.namespace_id().to_owned(),
            reason: reason.into(),
        };
        let cancel = |mut rpc: v1::workflow_service_client::WorkflowServiceClient<_>| {
            let request = request.clone();
            async move { rpc.cancel_workflow_run(request).await }
        };
        self.client.call("cancel a run", Repeat::Safe, cancel).await?;
        Ok(())
    }

    /// Ends the run as FAILED at once, whatever its worker is doing; its failure handler is started.
    pub async fn terminate(&self, reason: impl Into<String>) -> Result<(), Error> {
        let request = v1::TerminateWorkflowRunRequest {
            run_id: self.run_id.clone(),
            namespace_id: self.client.namespace_id().to_owned(),
            reason: reason.into(),
        };
        let terminate = |mut rpc: v1::workflow_service_client::WorkflowServiceClient<_>| {
            let request = request.clone();
            async move { rpc.terminate_workflow_run(request).await }
        };
        self.client.call("terminate a run", Repeat::Safe, terminate).await?;
        Ok(())
    }

    /// Retries now: a waiting retry begins at once, and a run that failed goes on in place, from its failed
    /// step. Answers with the run's state.
    pub async fn retry(&self) -> Result<WorkflowStatus, Error> {
        self.retry_from("").await
    }

    /// The same from an earlier failed step, after which nothing but failures was recorded. Empty: the step that failed
    /// the run.
    pub async fn retry_from(&self, step: &str) -> Result<WorkflowStatus, Error> {
        let request = v1::RetryWorkflowRunRequest {
            run_id: self.run_id.clone(),
            namespace_id: self.client.namespace_id().to_owned(),
            from_step: step.to_owned(),
            request_id: Uuid::now_v7().to_string(),
        };
        let retry = |mut rpc: v1::workflow_service_client::WorkflowServiceClient<_>| {
            let request = request.clone();
            async move { rpc.retry_workflow_run(request).await }
        };
        Ok(self.client.call("retry a run", Repeat::Safe, retry).await?.status())
    }

    /// Starts a new run with the type, queue, input and options of this one.
    pub async fn restart(&self) -> Result<RunHandle, Error> {
        let request = v1::RestartWorkflowRunRequest {
            run_id: self.run_id.clone(),
            namespace_id: self.client.namespace_id().to_owned(),
            business_id: String::new(),
        };
        let restart = |mut rpc: v1::workflow_service_client::WorkflowServiceClient<_>| {
            let request = request.clone();
            async move { rpc.restart_workflow_run(request).await }
        };
        // A repeated restart would be a second new run.
        let started = self.client.call("restart a run", Repeat::Unsafe, restart).await?;
        Ok(RunHandle::new(self.client.clone(), started.run_id, false))
    }

    /// Lets a paused run, or one that waits for a retry, go on now. Answers with the run's state.
    pub async fn resume(&self) -> Result<WorkflowStatus, Error> {
        let request = v1::ResumeWorkflowRunRequest {
            run_id: self.run_id.clone(),
            namespace_id: self.client.namespace_id().to_owned(),
            request_id: Uuid::now_v7().to_string(),
        };
        let resume = |mut rpc: v1::workflow_service_client::WorkflowServiceClient<_>| {
            let request = request.clone();
            async move { rpc.resume_workflow_run(request).await }
        };
        Ok(self.client.call("resume a run", Repeat::Safe, resume).await?.status())
    }

    /// Reads the run's whole history, oldest event first.
    pub async fn events(&self) -> Result<Vec<RunEvent>, Error> {
        self.history().all().await
    }

    /// The run's history, to be filtered and read from either end. Nothing is asked yet.
    pub fn history(&self) -> RunHistory {
        RunHistory::new(self.client.clone(), self.run_id.clone())
    }

    /// What the run's steps did, to be filtered and read. Nothing is asked yet.
    pub fn attempts(&self) -> StepAttempts {
        StepAttempts::new(self.client.clone(), self.run_id.clone())
    }

    /// Reads the run as it is now.
    pub async fn describe(&self) -> Result<WorkflowRun, Error> {
        self.client.get(self.run_id.clone()).await
    }
}

/// A server that cannot be reached, for a while.
#[derive(Default)]
struct Outage {
    began: Option<(Instant, ReconnectDelay)>,
}

impl Outage {
    /// Waits before the next try, or gives the error back when there should be none.
    async fn bear(&mut self, error: Error) -> Result<(), Error> {
        let (began, backoff) = self.began.get_or_insert_with(|| (Instant::now(), ReconnectDelay::new()));
        if !error.is_outage() || began.elapsed() >= limits::OUTAGE_MAX {
            return Err(error);
        }
        tokio::time::sleep(backoff.next_delay()).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unavailable() -> Error {
        Error::refused("wait for a run", &tonic::Status::unavailable("restarting"))
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_borne_for_a_minute() {
        let mut outage = Outage::default();
        let began = Instant::now();

        while outage.bear(unavailable()).await.is_ok() {}

        assert!(began.elapsed() >= limits::OUTAGE_MAX);
        assert!(began.elapsed() < limits::OUTAGE_MAX + limits::RECONNECT_DELAY_MAX);
    }

    #[tokio::test]
    async fn a_refusal_is_no_outage() {
        let error = Error::refused("wait for a run", &tonic::Status::not_found("no such run"));

        assert!(Outage::default().bear(error).await.is_err());
    }
}
