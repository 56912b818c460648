//! `run.attempts()`: what a run's steps did, filtered, one page at a time or all.

use futures_util::Stream;
use kagzi_proto::v1;

use crate::client::Client;
use crate::client::wire::rpc;
use crate::error::Error;
use crate::history::attempt::{StepAttempt, StepStatus};
use crate::page::{self, Page};

/// Step attempts that are being asked for, oldest first. What is not set does not filter; everything that is
/// set must match.
///
/// ```no_run
/// # async fn look(run: kagzi::client::RunHandle) -> anyhow::Result<()> {
/// use kagzi::history::StepStatus;
///
/// for attempt in run.attempts().step("charge").status(StepStatus::Failed).all().await? {
///     println!("attempt {}: {:?}", attempt.attempt, attempt.error);
/// }
/// # Ok(()) }
/// ```
///
/// ```no_run
/// # async fn list(run: kagzi::client::RunHandle) -> anyhow::Result<()> {
/// use futures_util::TryStreamExt;
/// use kagzi::history::StepStatus;
///
/// let list = run.attempts().step("charge").status(StepStatus::Failed).page_size(100);
/// let first = list.page("").await?;
/// println!("{} of {:?}", first.rows.len(), first.total);
/// let all = list.all().await?;
/// let streamed: Vec<_> = list.stream().try_collect().await?;
/// assert_eq!(all.len(), streamed.len());
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
        self.change(|request| request.statuses.push(status.to_wire()))
    }

    /// Attempts per page, at most 5000. Default: 1000. A page with large outputs has fewer.
    pub fn page_size(self, attempts: u16) -> Self {
        self.change(|request| request.page_size = attempts.into())
    }

    /// One page: the first for an empty token, else the one that the token of another page names. A token
    /// fits the filters that it came from, and no others.
    pub async fn page(&self, token: impl Into<String>) -> Result<Page<StepAttempt>, Error> {
        let request = v1::ListStepAttemptsRequest { page_token: token.into(), ..self.request.clone() };
        let mut page = rpc!(self.client, Workflows.list_step_attempts, Safe, "list step attempts", request)?;
        for attempt in &mut page.step_attempts {
            let decoded = self.client.codecs.decode_attempt(attempt).await;
            decoded.map_err(|error| Error::undecodable("a step attempt", &error))?;
        }
        let attempts = page.step_attempts.into_iter().map(StepAttempt::from_proto).collect();
        Ok(Page::new(attempts, page.next_page_token, page.prev_page_token)
            .counted(page.total_count, page.total_capped))
    }

    /// All attempts that match, fetched page by page as they are taken.
    pub fn stream(self) -> impl Stream<Item = Result<StepAttempt, Error>> + Send {
        page::stream(self, |attempts, token| async move { attempts.page(token).await })
    }

    /// All of them at once.
    pub async fn all(&self) -> Result<Vec<StepAttempt>, Error> {
        page::all(self.clone().stream()).await
    }

    fn change(mut self, set: impl FnOnce(&mut v1::ListStepAttemptsRequest)) -> Self {
        set(&mut self.request);
        self
    }
}
