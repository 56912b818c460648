//! `client.schedules()`: lists of schedules, filtered, one page at a time or all.

use futures_util::Stream;
use kagzi_proto::v1;

use crate::client::Client;
use crate::client::wire::rpc;
use crate::error::Error;
use crate::page::{self, Page};
use crate::schedule::described::Schedule;

/// Schedules that are being asked for, newest first and without their inputs. What is not set does not
/// filter.
///
/// ```no_run
/// # async fn list(client: kagzi::Client) -> anyhow::Result<()> {
/// use futures_util::TryStreamExt;
///
/// let list = client.schedules().workflow_type("report").user_id("ann").paused(false);
/// let list = list.page_size(100).with_total();
/// let first = list.page("").await?;
/// println!("{} of {:?}", first.rows.len(), first.total);
/// let all = list.all().await?;
/// let streamed: Vec<_> = list.stream().try_collect().await?;
/// assert_eq!(all.len(), streamed.len());
/// # Ok(()) }
/// ```
#[must_use = "nothing is asked before .page(..) or .all()"]
#[derive(Clone)]
pub struct Schedules {
    client: Client,
    request: v1::ListSchedulesRequest,
}

impl Schedules {
    pub(crate) fn new(client: Client) -> Schedules {
        let namespace_id = client.namespace_id().to_owned();
        let request = v1::ListSchedulesRequest { namespace_id, ..Default::default() };
        Schedules { client, request }
    }

    /// Schedules that start this workflow type.
    pub fn workflow_type(self, name: impl Into<String>) -> Self {
        self.change(|request| request.workflow_type = name.into())
    }

    /// Schedules whose runs are for this user.
    pub fn user_id(self, user: impl Into<String>) -> Self {
        self.change(|request| request.user_id = user.into())
    }

    /// Those that are paused, or those that are not.
    pub fn paused(self, paused: bool) -> Self {
        self.change(|request| request.paused = Some(paused))
    }

    /// Schedules per page, at most 1000. Default: 50.
    pub fn page_size(self, schedules: u16) -> Self {
        self.change(|request| request.page_size = schedules.into())
    }

    /// Also count all that match, up to 10,000: [`Page::total`].
    pub fn with_total(self) -> Self {
        self.change(|request| request.include_total = true)
    }

    /// One page: the first for an empty token, else the one that the token of another page names. A token
    /// fits the filters that it came from, and no others.
    pub async fn page(&self, token: impl Into<String>) -> Result<Page<Schedule>, Error> {
        let request = v1::ListSchedulesRequest { page_token: token.into(), ..self.request.clone() };
        let page = rpc!(self.client, Schedules.list_schedules, Safe, "list schedules", request)?;
        let schedules = page.schedules.into_iter().map(Schedule::from_proto).collect();
        let list = Page::new(schedules, page.next_page_token, page.prev_page_token);
        let list = list.without(page.unreadable_count);
        Ok(if self.request.include_total { list.counted(page.total_count, page.total_capped) } else { list })
    }

    /// All schedules that match, fetched page by page as they are taken.
    pub fn stream(self) -> impl Stream<Item = Result<Schedule, Error>> + Send {
        page::stream(self, |schedules, token| async move { schedules.page(token).await })
    }

    /// All of them at once.
    pub async fn all(&self) -> Result<Vec<Schedule>, Error> {
        page::all(self.clone().stream()).await
    }

    fn change(mut self, set: impl FnOnce(&mut v1::ListSchedulesRequest)) -> Self {
        set(&mut self.request);
        self
    }
}
