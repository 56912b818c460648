//! `admin.workers()`: the registry, filtered, one page at a time or all.

use futures_util::Stream;
use kagzi_proto::v1;

use crate::admin::registered_worker::{RegisteredWorker, WorkerStatus};
use crate::client::Client;
use crate::client::wire::rpc;
use crate::error::Error;
use crate::page::{self, Page};

/// Workers that are being asked for, newest first, those that went offline included. What is not set does not
/// filter.
///
/// ```no_run
/// # async fn list(admin: kagzi::admin::Admin) -> anyhow::Result<()> {
/// use futures_util::TryStreamExt;
/// use kagzi::admin::WorkerStatus;
///
/// let list = admin.workers().task_queue("orders").status(WorkerStatus::Online).page_size(100);
/// let first = list.page("").await?;
/// println!("{} of {:?}", first.rows.len(), first.total);
/// let all = list.all().await?;
/// let streamed: Vec<_> = list.stream().try_collect().await?;
/// assert_eq!(all.len(), streamed.len());
/// # Ok(()) }
/// ```
#[must_use = "nothing is asked before .page(..) or .all()"]
#[derive(Clone)]
pub struct Workers {
    client: Client,
    request: v1::ListWorkersRequest,
}

impl Workers {
    pub(crate) fn new(client: Client) -> Workers {
        let namespace_id = client.namespace_id().to_owned();
        let request = v1::ListWorkersRequest { namespace_id, ..Default::default() };
        Workers { client, request }
    }

    /// Workers of this queue.
    pub fn task_queue(self, name: impl Into<String>) -> Self {
        self.change(|request| request.task_queue = name.into())
    }

    /// Workers in this state.
    pub fn status(self, status: WorkerStatus) -> Self {
        self.change(|request| request.status = status.to_wire())
    }

    /// Workers per page, at most 1000. Default: 50.
    pub fn page_size(self, workers: u16) -> Self {
        self.change(|request| request.page_size = workers.into())
    }

    /// One page: the first for an empty token, else the one that the token of another page names. A token
    /// fits the filters that it came from, and no others.
    pub async fn page(&self, token: impl Into<String>) -> Result<Page<RegisteredWorker>, Error> {
        let request = v1::ListWorkersRequest { page_token: token.into(), ..self.request.clone() };
        let page = rpc!(self.client, Workers.list_workers, Safe, "list workers", request)?;
        let workers = page.workers.into_iter().map(RegisteredWorker::from_proto).collect();
        let list = Page::new(workers, page.next_page_token, page.prev_page_token);
        Ok(list.without(page.unreadable_count).counted(page.total_count, page.total_capped))
    }

    /// All workers that match, fetched page by page as they are taken.
    pub fn stream(mut self) -> impl Stream<Item = Result<RegisteredWorker, Error>> + Send {
        // As many at once as the server gives, unless told otherwise: each page is counted anew.
        if self.request.page_size == 0 {
            self.request.page_size = 1_000;
        }
        page::stream(self, |workers, token| async move { workers.page(token).await })
    }

    /// All of them at once.
    pub async fn all(&self) -> Result<Vec<RegisteredWorker>, Error> {
        page::all(self.clone().stream()).await
    }

    fn change(mut self, set: impl FnOnce(&mut v1::ListWorkersRequest)) -> Self {
        set(&mut self.request);
        self
    }
}
