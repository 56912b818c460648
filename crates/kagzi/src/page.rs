//! Lists: one page at a time, or row by row.

use std::future::Future;

use futures_util::{Stream, TryStreamExt};

use crate::absent::text;
use crate::error::Error;

/// One page of a list, in the order of the list.
///
/// ```no_run
/// # async fn list(client: kagzi::Client) -> anyhow::Result<()> {
/// let runs = client.runs().page_size(20);
/// let first = runs.page("").await?;
/// if let Some(token) = &first.next {
///     let second = runs.page(token).await?;
///     assert!(second.previous.is_some());
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Page<T> {
    /// What is on it.
    pub rows: Vec<T>,
    /// The token of the next page; none when this is the last.
    pub next: Option<String>,
    /// The token of the page before; none when this is the first.
    pub previous: Option<String>,
    /// How many rows match on all pages, where the server says so.
    pub total: Option<Total>,
    /// Rows that belong on it, cannot be read by this server and were left out: see `kagzi doctor`.
    pub unreadable: u32,
}

/// How many rows a list has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Total {
    /// Counted up to a limit of the server's.
    pub count: u64,
    /// There are more than were counted.
    pub capped: bool,
}

impl<T> Page<T> {
    pub(crate) fn new(rows: Vec<T>, next: String, previous: String) -> Page<T> {
        Page { rows, next: text(next), previous: text(previous), total: None, unreadable: 0 }
    }

    pub(crate) fn without(mut self, unreadable: u32) -> Page<T> {
        self.unreadable = unreadable;
        self
    }

    pub(crate) fn counted(mut self, count: u64, capped: bool) -> Page<T> {
        self.total = Some(Total { count, capped });
        self
    }
}

/// All rows, fetched page by page as they are taken.
pub(crate) fn stream<L, T, F>(
    list: L,
    page: impl Fn(L, String) -> F + Clone + Send + 'static,
) -> impl Stream<Item = Result<T, Error>> + Send + 'static
where
    L: Clone + Send + 'static,
    T: Send + 'static,
    F: Future<Output = Result<Page<T>, Error>> + Send,
{
    struct Walk<T> {
        rows: std::vec::IntoIter<T>,
        /// None after the last page.
        next: Option<String>,
    }
    let walk = Walk { rows: Vec::new().into_iter(), next: Some(String::new()) };
    futures_util::stream::try_unfold(walk, move |mut walk| {
        let (list, page) = (list.clone(), page.clone());
        async move {
            loop {
                if let Some(row) = walk.rows.next() {
                    return Ok(Some((row, walk)));
                }
                let Some(token) = walk.next.take() else { return Ok(None) };
                let read = page(list.clone(), token).await?;
                walk = Walk { rows: read.rows.into_iter(), next: read.next };
            }
        }
    })
}

/// All rows of a stream at once.
pub(crate) async fn all<T>(rows: impl Stream<Item = Result<T, Error>>) -> Result<Vec<T>, Error> {
    rows.try_collect().await
}
