//! One page of a list.

use std::future::Future;

use crate::error::Error;

/// One page of a list, in the order of the list.
#[derive(Debug, Clone)]
pub struct Page<T> {
    /// What is on it.
    pub rows: Vec<T>,
    /// For the next page; empty when this is the last.
    pub next_page_token: String,
    /// For the page before; empty when this is the first.
    pub prev_page_token: String,
}

/// Reads a list to its end.
pub(crate) async fn all<T, F>(mut page: impl FnMut(String) -> F) -> Result<Vec<T>, Error>
where
    F: Future<Output = Result<Page<T>, Error>>,
{
    let mut rows = Vec::new();
    let mut token = String::new();
    loop {
        let read = page(token).await?;
        rows.extend(read.rows);
        token = read.next_page_token;
        if token.is_empty() {
            return Ok(rows);
        }
    }
}
