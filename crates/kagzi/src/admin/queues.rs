//! `admin.queues()`: the queues of a namespace, by name.

use futures_util::Stream;
use kagzi_proto::v1;

use crate::admin::queue::{Gate, Queue};
use crate::client::Client;
use crate::client::watch::{self, Changes};
use crate::client::wire::rpc;
use crate::error::Error;
use crate::page::{self, Page};

/// Queues that are being asked for, by name: all that have a living run, a worker or a gate.
///
/// ```no_run
/// # async fn list(admin: kagzi::admin::Admin) -> anyhow::Result<()> {
/// use futures_util::TryStreamExt;
///
/// let list = admin.queues().named("orders").page_size(100);
/// let first = list.page("").await?;
/// println!("{} of {:?}", first.rows.len(), first.total);
/// let all = list.all().await?;
/// let streamed: Vec<_> = list.stream().try_collect().await?;
/// assert_eq!(all.len(), streamed.len());
/// # Ok(()) }
/// ```
#[must_use = "nothing is asked before .page(..), .stream() or .all()"]
#[derive(Clone)]
pub struct Queues {
    client: Client,
    request: v1::ListQueuesRequest,
}

impl Queues {
    pub(crate) fn new(client: Client) -> Queues {
        let namespace_id = client.namespace_id().to_owned();
        let request = v1::ListQueuesRequest { namespace_id, ..Default::default() };
        Queues { client, request }
    }

    /// The queue of this name. Empty: all.
    pub fn named(mut self, task_queue: impl Into<String>) -> Self {
        self.request.task_queue = task_queue.into();
        self
    }

    /// Queues per page, at most 1000. Default: 50.
    pub fn page_size(mut self, queues: u16) -> Self {
        self.request.page_size = queues.into();
        self
    }

    /// One page: the first for an empty token, else the one that the token of another page names.
    pub async fn page(&self, token: impl Into<String>) -> Result<Page<Queue>, Error> {
        let request = v1::ListQueuesRequest { page_token: token.into(), ..self.request.clone() };
        let page = rpc!(self.client, Admins.list_queues, Safe, "list queues", request)?;
        let queues = page.queues.into_iter().map(Queue::from_proto).collect();
        let list = Page::new(queues, page.next_page_token, page.prev_page_token);
        Ok(list.counted(page.total_count, page.total_capped))
    }

    /// All queues, fetched page by page as they are taken.
    pub fn stream(mut self) -> impl Stream<Item = Result<Queue, Error>> + Send {
        // As many at once as the server gives, unless told otherwise: each page is counted anew.
        if self.request.page_size == 0 {
            self.request.page_size = 1_000;
        }
        page::stream(self, |queues, token| async move { queues.page(token).await })
    }

    /// All queues as they change: first all of them, then whatever is different, at most once a second, and
    /// the gate before the whole namespace. The stream has no end; it goes on when the server restarts or
    /// another one takes over. A server that cannot be reached for a minute is an error.
    ///
    /// ```no_run
    /// # async fn follow(client: kagzi::Client) -> anyhow::Result<()> {
    /// use futures_util::TryStreamExt;
    ///
    /// let mut changes = std::pin::pin!(client.admin().queues().watch());
    /// while let Some((changes, _namespace_gate)) = changes.try_next().await? {
    ///     for queue in changes.changed {
    ///         println!("{} has {} ready", queue.task_queue, queue.depth.ready);
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn watch(self) -> impl Stream<Item = Result<(Changes<Queue>, Gate), Error>> + Send + 'static {
        let v1::ListQueuesRequest { namespace_id, task_queue, .. } = self.request;
        watch::queues(self.client, v1::WatchQueuesRequest { namespace_id, task_queue })
    }

    /// All of them at once.
    pub async fn all(&self) -> Result<Vec<Queue>, Error> {
        page::all(self.clone().stream()).await
    }
}
