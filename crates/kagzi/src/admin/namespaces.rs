//! `admin.namespaces()`: the namespaces of a server, by name.

use futures_util::Stream;
use kagzi_proto::v1;

use crate::admin::namespace::Namespace;
use crate::client::Client;
use crate::client::wire::rpc;
use crate::error::Error;
use crate::page::{self, Page};

/// Namespaces that are being asked for, by name.
///
/// ```no_run
/// # async fn list(admin: kagzi::admin::Admin) -> anyhow::Result<()> {
/// use futures_util::TryStreamExt;
///
/// let list = admin.namespaces().page_size(100).with_total();
/// let first = list.page("").await?;
/// println!("{} of {:?}", first.rows.len(), first.total);
/// let all = list.all().await?;
/// let streamed: Vec<_> = list.stream().try_collect().await?;
/// assert_eq!(all.len(), streamed.len());
/// # Ok(()) }
/// ```
#[must_use = "nothing is asked before .page(..), .stream() or .all()"]
#[derive(Clone)]
pub struct Namespaces {
    client: Client,
    request: v1::ListNamespacesRequest,
}

impl Namespaces {
    pub(crate) fn new(client: Client) -> Namespaces {
        Namespaces { client, request: v1::ListNamespacesRequest::default() }
    }

    /// Namespaces per page, at most 1000. Default: 50.
    pub fn page_size(mut self, namespaces: u16) -> Self {
        self.request.page_size = namespaces.into();
        self
    }

    /// Also count all of them, up to 10,000: [`Page::total`].
    pub fn with_total(mut self) -> Self {
        self.request.include_total = true;
        self
    }

    /// One page: the first for an empty token, else the one that the token of another page names.
    pub async fn page(&self, token: impl Into<String>) -> Result<Page<Namespace>, Error> {
        let request = v1::ListNamespacesRequest { page_token: token.into(), ..self.request.clone() };
        let page = rpc!(self.client, Admins.list_namespaces, Safe, "list namespaces", request)?;
        let namespaces = page.namespaces.into_iter().map(Namespace::from_proto).collect();
        let list = Page::new(namespaces, page.next_page_token, page.prev_page_token);
        let list = list.without(page.unreadable_count);
        Ok(if self.request.include_total { list.counted(page.total_count, page.total_capped) } else { list })
    }

    /// All namespaces, fetched page by page as they are taken.
    pub fn stream(self) -> impl Stream<Item = Result<Namespace, Error>> + Send {
        page::stream(self, |namespaces, token| async move { namespaces.page(token).await })
    }

    /// All of them at once.
    pub async fn all(&self) -> Result<Vec<Namespace>, Error> {
        page::all(self.clone().stream()).await
    }
}
