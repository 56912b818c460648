//! `client.runs()`: lists of runs, filtered, one page at a time or as a stream.

use std::time::SystemTime;

use futures_util::Stream;
use kagzi_proto::v1;

use crate::client::Client;
use crate::client::run::{Reason, Run, RunStatus};
use crate::client::watch::{self, Changes};
use crate::client::wire::rpc;
use crate::error::Error;
use crate::page::{self, Page, Total};

/// Runs that are being asked for. What is not set does not filter; everything that is set must match.
///
/// ```no_run
/// # async fn list(client: kagzi::Client) -> anyhow::Result<()> {
/// use futures_util::TryStreamExt;
/// use kagzi::client::RunStatus;
///
/// let failed = client.runs().status(RunStatus::Failed).label("tenant", "acme").finished_first();
/// let runs: Vec<_> = failed.stream().try_collect().await?;
/// # Ok(()) }
/// ```
///
/// ```no_run
/// # async fn count(client: kagzi::Client) -> anyhow::Result<()> {
/// use std::time::{Duration, SystemTime};
/// use kagzi::client::Reason;
///
/// let yesterday = SystemTime::now() - Duration::from_secs(24 * 3600);
/// let orders = client.runs().workflow_type("order").task_queue("orders").user_id("ann").page_size(100);
/// let waiting = orders.clone().reason(Reason::Retry).error_code("CARD_DECLINED").count().await?;
/// let nightly = orders.clone().schedule("nightly").created_from(yesterday).created_to(SystemTime::now());
/// let ended = orders.clone().finished_from(yesterday).finished_to(SystemTime::now()).ascending();
/// let named = orders.clone().business_id("order-42").page("").await?;
/// let begun = orders.business_id_prefix("order-").with_total().page("").await?;
/// println!("{waiting:?} {:?} {named:?} {begun:?} {:?}", nightly.all().await?, ended.all().await?);
/// # Ok(()) }
/// ```
#[must_use = "nothing is asked before .page(..), .stream() or .count()"]
#[derive(Clone)]
pub struct Runs {
    client: Client,
    request: v1::ListWorkflowRunsRequest,
}

impl std::fmt::Debug for Runs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.request.fmt(f)
    }
}

impl Runs {
    pub(crate) fn new(client: Client) -> Runs {
        let request = v1::ListWorkflowRunsRequest {
            namespace_id: client.namespace_id().to_owned(),
            ..Default::default()
        };
        Runs { client, request }
    }

    /// Runs in this state; called again, in any of them.
    pub fn status(self, status: RunStatus) -> Self {
        self.change(|request| request.statuses.push(status.to_wire()))
    }

    /// Runs of this type.
    pub fn workflow_type(self, name: impl Into<String>) -> Self {
        self.change(|request| request.workflow_type = name.into())
    }

    /// Runs of this queue.
    pub fn task_queue(self, name: impl Into<String>) -> Self {
        self.change(|request| request.task_queue = name.into())
    }

    /// Runs that failed, timed out or are retried with this error code.
    pub fn error_code(self, code: impl Into<String>) -> Self {
        self.change(|request| request.error_code = code.into())
    }

    /// Runs that wait for this.
    pub fn reason(self, reason: Reason) -> Self {
        self.change(|request| request.reason = reason.to_wire())
    }

    /// Runs that this schedule started.
    pub fn schedule(self, id: impl Into<String>) -> Self {
        self.change(|request| request.schedule_id = id.into())
    }

    /// Runs that are for this user.
    pub fn user_id(self, user: impl Into<String>) -> Self {
        self.change(|request| request.user_id = user.into())
    }

    /// The run with this business id.
    pub fn business_id(self, id: impl Into<String>) -> Self {
        self.change(|request| request.business_id = id.into())
    }

    /// Runs whose business id begins like this.
    pub fn business_id_prefix(self, prefix: impl Into<String>) -> Self {
        self.change(|request| request.business_id_prefix = prefix.into())
    }

    /// Runs with this label; called again, with all of them.
    pub fn label(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.change(|request| drop(request.labels.insert(name.into(), value.into())))
    }

    /// Runs created at this time or later.
    pub fn created_from(self, at: SystemTime) -> Self {
        self.change(|request| request.created_from = Some(at.into()))
    }

    /// Runs created before this time.
    pub fn created_to(self, at: SystemTime) -> Self {
        self.change(|request| request.created_to = Some(at.into()))
    }

    /// Runs that ended at this time or later.
    pub fn finished_from(self, at: SystemTime) -> Self {
        self.change(|request| request.finished_from = Some(at.into()))
    }

    /// Runs that ended before this time.
    pub fn finished_to(self, at: SystemTime) -> Self {
        self.change(|request| request.finished_to = Some(at.into()))
    }

    /// Those that ended last first, instead of the newest; runs that have not ended are left out.
    pub fn finished_first(self) -> Self {
        self.change(|request| request.set_order(v1::RunOrder::Finished))
    }

    /// The other way round: the oldest first.
    pub fn ascending(self) -> Self {
        self.change(|request| request.ascending = true)
    }

    /// Runs per page, at most 1000. Default: 50.
    pub fn page_size(self, runs: u16) -> Self {
        self.change(|request| request.page_size = runs.into())
    }

    /// Also count all that match, up to 10,000: [`Page::total`].
    pub fn with_total(self) -> Self {
        self.change(|request| request.include_total = true)
    }

    /// One page: the first for an empty token, else the one that the token of another page names. A token
    /// fits the filters and the order that it came from, and no others.
    pub async fn page(&self, token: impl Into<String>) -> Result<Page<Run>, Error> {
        let request = v1::ListWorkflowRunsRequest { page_token: token.into(), ..self.request.clone() };
        let page = self.ask(request).await?;
        let mut runs = Vec::with_capacity(page.workflow_runs.len());
        for run in page.workflow_runs {
            runs.push(self.client.readable(run).await);
        }
        let list = Page::new(runs, page.next_page_token, page.prev_page_token);
        let list = list.without(page.unreadable_count);
        Ok(if self.request.include_total { list.counted(page.total_count, page.total_capped) } else { list })
    }

    /// All runs that match, fetched page by page as they are taken. Runs that come in meanwhile may be
    /// missing; none is seen twice.
    pub fn stream(self) -> impl Stream<Item = Result<Run, Error>> + Send {
        page::stream(self, |runs, token| async move { runs.page(token).await })
    }

    /// All of them at once.
    pub async fn all(&self) -> Result<Vec<Run>, Error> {
        page::all(self.clone().stream()).await
    }

    /// The newest runs that match, as they change: first all of them, then whatever is different. The filter
    /// is that of the list, [`page_size`](Runs::page_size) says how many are watched (at most 200), and only
    /// the newest state of a run is told. The stream has no end; it goes on when the server restarts or
    /// another one takes over, without telling anything twice. A server that cannot be reached for a minute
    /// is an error.
    ///
    /// ```no_run
    /// # async fn follow(client: kagzi::Client) -> anyhow::Result<()> {
    /// use futures_util::TryStreamExt;
    ///
    /// let mut changes = std::pin::pin!(client.runs().workflow_type("order").watch());
    /// while let Some(changes) = changes.try_next().await? {
    ///     for run in changes.changed {
    ///         println!("{} is {}", run.run_id, run.status);
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn watch(self) -> impl Stream<Item = Result<Changes<Run>, Error>> + Send + 'static {
        watch::runs(self.client, self.request)
    }

    /// How many match, counted up to 10,000.
    pub async fn count(&self) -> Result<Total, Error> {
        let request =
            v1::ListWorkflowRunsRequest { page_size: 1, include_total: true, ..self.request.clone() };
        let page = self.ask(request).await?;
        Ok(Total { count: page.total_count, capped: page.total_capped })
    }

    async fn ask(&self, request: v1::ListWorkflowRunsRequest) -> Result<v1::ListWorkflowRunsResponse, Error> {
        rpc!(self.client, Workflows.list_workflow_runs, Safe, "list runs", request)
    }

    fn change(mut self, set: impl FnOnce(&mut v1::ListWorkflowRunsRequest)) -> Self {
        set(&mut self.request);
        self
    }
}
