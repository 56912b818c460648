//! `admin.workers()`: the registry, filtered, one page at a time or all.

use kagzi_proto::v1::{self, Worker as RegisteredWorker, WorkerStatus};

use crate::client::admin::call;
use crate::client::page::{self, Page};
use crate::client::{Client, Repeat};
use crate::error::Error;

/// Workers that are being asked for, newest first, those that went offline included. What is not set does not filter.
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
        let name = status.as_str_name();
        let name = name.strip_prefix("WORKER_STATUS_").unwrap_or(name).to_owned();
        self.change(|request| request.filter_status = name)
    }

    /// Workers per page, at most 1000. Default: 50.
    pub fn page_size(self, workers: u16) -> Self {
        self.change(|request| request.page_size = workers.into())
    }

    /// One page: the first for an empty token, else the one that the token of another page names. A token fits
    /// the filters that it came from, and no others.
    pub async fn page(&self, token: impl Into<String>) -> Result<Page<RegisteredWorker>, Error> {
        let request = v1::ListWorkersRequest { page_token: token.into(), ..self.request.clone() };
        let page = call!(self.client, WorkersRpc, Safe, "list workers", list_workers, request)?;
        Ok(Page {
            rows: page.workers,
            next_page_token: page.next_page_token,
            prev_page_token: page.prev_page_token,
        })
    }

    /// All of them.
    pub async fn all(&self) -> Result<Vec<RegisteredWorker>, Error> {
        // As many at once as the server gives, unless told otherwise: each page is counted anew.
        let request = v1::ListWorkersRequest {
            page_size: if self.request.page_size == 0 { 1_000 } else { self.request.page_size },
            ..self.request.clone()
        };
        let list = Workers { client: self.client.clone(), request };
        page::all(|token| list.page(token)).await
    }

    fn change(mut self, set: impl FnOnce(&mut v1::ListWorkersRequest)) -> Self {
        set(&mut self.request);
        self
    }
}
