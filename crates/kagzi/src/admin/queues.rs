//! `admin.queues()`: the queues of a namespace, by name.

use futures_util::Stream;
use kagzi_proto::v1;

use crate::admin::queue::Queue;
use crate::client::Client;
use crate::client::wire::rpc;
use crate::error::Error;
use crate::page::{self, Page};

/// Queues that are being asked for, by name: all that have a living run, a worker or a gate.
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

    /// Queues per page, at most 5000. Default: 1000.
    pub fn page_size(mut self, queues: u16) -> Self {
        self.request.page_size = queues.into();
        self
    }

    /// One page: the first for an empty token, else the one that the token of another page names.
    pub async fn page(&self, token: impl Into<String>) -> Result<Page<Queue>, Error> {
        let request = v1::ListQueuesRequest { page_token: token.into(), ..self.request.clone() };
        let page = rpc!(self.client, Admins.list_queues, Safe, "list queues", request)?;
        let queues = page.queues.into_iter().map(Queue::from_proto).collect();
        Ok(Page::new(queues, page.next_page_token, String::new()))
    }

    /// All queues, fetched page by page as they are taken.
    pub fn stream(self) -> impl Stream<Item = Result<Queue, Error>> + Send {
        page::stream(self, |queues, token| async move { queues.page(token).await })
    }

    /// All of them at once.
    pub async fn all(&self) -> Result<Vec<Queue>, Error> {
        page::all(self.clone().stream()).await
    }
}
