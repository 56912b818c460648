//! `run.attempts()`: what a run's steps did, filtered, one page at a time or all.

use kagzi_proto::v1::{self, StepAttempt, StepStatus};

use crate::client::page::{self, Page};
use crate::client::{Client, Repeat};
use crate::error::Error;

/// Step attempts that are being asked for, oldest first. What is not set does not filter; everything that is set must match.
///
/// ```no_run
/// # async fn look(run: kagzi::RunHandle) -> anyhow::Result<()> {
/// use kagzi::StepStatus;
///
/// for attempt in run.attempts().step("charge").status(StepStatus::Failed).all().await? {
///     println!("attempt {}: {:?}", attempt.attempt, attempt.error);
/// }
/// # Ok(()) }
/// ```
#[must_use = "nothing is asked before .page(..) or .all()"]
#[derive(Clone)]
pub struct StepAttempts {
    client: Client,
    request: v1::ListStepAttemptsRequest,
}

impl StepAttempts {
    pub(crate) fn new(client: Client, run_id: String) -> StepAttempts {
        let namespace_id = client.namespace_id().to_owned();
        let request = v1::ListStepAttemptsRequest { run_id, namespace_id, ..Default::default() };
        StepAttempts { client, request }
    }

    /// Attempts of this step.
    pub fn step(self, path: impl Into<String>) -> Self {
        self.change(|request| request.step_id = path.into())
    }

    /// Attempts in this state; called again, in any of them.
    pub fn status(self, status: StepStatus) -> Self {
        self.change(|request| request.statuses.push(status.into()))
    }

    /// Attempts per page, at most 5000. Default: 1000. A page with large outputs has fewer.
    pub fn page_size(self, attempts: u16) -> Self {
        self.change(|request| request.page_size = attempts.into())
    }

    /// One page: the first for an empty token, else the one that the token of another page names. A token fits
    /// the filters that it came from, and no others.
    pub async fn page(&self, token: impl Into<String>) -> Result<Page<StepAttempt>, Error> {
        let request = v1::ListStepAttemptsRequest { page_token: token.into(), ..self.request.clone() };
        let read = |mut rpc: v1::workflow_service_client::WorkflowServiceClient<_>| {
            let request = request.clone();
            async move { rpc.list_step_attempts(request).await }
        };
        let mut page = self.client.call("list step attempts", Repeat::Safe, read).await?;
        for attempt in &mut page.step_attempts {
            let decoded = self.client.codecs.decode_attempt(attempt);
            decoded.map_err(|error| Error::undecodable("a step attempt", &error))?;
        }
        Ok(Page {
            rows: page.step_attempts,
            next_page_token: page.next_page_token,
            prev_page_token: page.prev_page_token,
        })
    }

    /// All of them.
    pub async fn all(&self) -> Result<Vec<StepAttempt>, Error> {
        page::all(|token| self.page(token)).await
    }

    fn change(mut self, set: impl FnOnce(&mut v1::ListStepAttemptsRequest)) -> Self {
        set(&mut self.request);
        self
    }
}
