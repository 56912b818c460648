//! `run.history()`: a run's events, filtered, from either end, one page at a time or all.

use std::time::SystemTime;

use futures_util::Stream;
use kagzi_proto::v1;

use crate::client::Client;
use crate::client::wire::rpc;
use crate::error::Error;
use crate::history::event::Event;
use crate::page::{self, Page};

/// Events that are being asked for. What is not set does not filter; everything that is set must match.
///
/// ```no_run
/// # async fn look(run: kagzi::client::RunHandle) -> anyhow::Result<()> {
/// let failures = run.history().kind("step_failed").step("charge").all().await?;
/// let last_ten = run.history().newest_first().page_size(10).page("").await?.rows;
/// # Ok(()) }
/// ```
///
/// ```no_run
/// # async fn list(run: kagzi::client::RunHandle) -> anyhow::Result<()> {
/// use std::time::{Duration, SystemTime};
/// use futures_util::TryStreamExt;
///
/// let hour = Duration::from_secs(3600);
/// let list = run.history().after(10).from(SystemTime::now() - hour).to(SystemTime::now()).with_total();
/// println!("{:?}", list.page("").await?.total);
/// let all = list.all().await?;
/// let streamed: Vec<_> = list.stream().try_collect().await?;
/// assert_eq!(all.len(), streamed.len());
/// # Ok(()) }
/// ```
#[must_use = "nothing is asked before .page(..) or .all()"]
#[derive(Clone)]
pub struct RunHistory {
    client: Client,
    request: v1::ListRunEventsRequest,
    /// A kind that was asked for and that nobody knows.
    unknown_kind: Option<String>,
}

const ATTEMPTED: &str = "read a run's history";

impl RunHistory {
    pub(crate) fn new(client: Client, run_id: String) -> RunHistory {
        let namespace_id = client.namespace_id().to_owned();
        let request = v1::ListRunEventsRequest { run_id, namespace_id, ..Default::default() };
        RunHistory { client, request, unknown_kind: None }
    }

    /// Events of this kind, e.g. `step_failed`; called again, of any of them.
    pub fn kind(self, name: impl Into<String>) -> Self {
        let name = name.into();
        match v1::EventKind::from_word(&name) {
            Some(kind) => self.change(|request| request.kinds.push(kind.into())),
            None => RunHistory { unknown_kind: Some(name), ..self },
        }
    }

    /// Events about this step.
    pub fn step(self, path: impl Into<String>) -> Self {
        self.change(|request| request.step = path.into())
    }

    /// Events behind this sequence number.
    pub fn after(self, sequence: u64) -> Self {
        self.change(|request| request.after_sequence = sequence)
    }

    /// Events at this time or later.
    pub fn from(self, at: SystemTime) -> Self {
        self.change(|request| request.from = Some(at.into()))
    }

    /// Events before this time.
    pub fn to(self, at: SystemTime) -> Self {
        self.change(|request| request.to = Some(at.into()))
    }

    /// The other way round: the newest first.
    pub fn newest_first(self) -> Self {
        self.change(|request| request.newest_first = true)
    }

    /// Events per page, at most 5000. Default: 1000. A page with large payloads has fewer.
    pub fn page_size(self, events: u16) -> Self {
        self.change(|request| request.page_size = events.into())
    }

    /// Also count all that match, up to 10,000: [`Page::total`].
    pub fn with_total(self) -> Self {
        self.change(|request| request.include_total = true)
    }

    /// One page: the first for an empty token, else the one that the token of another page names. A token
    /// fits the filters and the order that it came from, and no others.
    pub async fn page(&self, token: impl Into<String>) -> Result<Page<Event>, Error> {
        if let Some(name) = &self.unknown_kind {
            let known: Vec<String> = v1::EventKind::all().map(v1::EventKind::word).collect();
            let rule = format!("kinds is \"{name}\": it must be one of {}", known.join(", "));
            return Err(Error::refused(ATTEMPTED, &tonic::Status::invalid_argument(rule)));
        }
        let request = v1::ListRunEventsRequest { page_token: token.into(), ..self.request.clone() };
        let mut page = rpc!(self.client, Workflows.list_run_events, Safe, ATTEMPTED, request)?;
        for event in &mut page.events {
            let decoded = self.client.codecs.decode_event(event).await;
            decoded.map_err(|error| Error::undecodable("the run's history", &error))?;
        }
        let events = page.events.into_iter().map(Event::from_proto).collect();
        let list = Page::new(events, page.next_page_token, page.prev_page_token);
        Ok(if self.request.include_total { list.counted(page.total_count, page.total_capped) } else { list })
    }

    /// All events that match, fetched page by page as they are taken.
    pub fn stream(self) -> impl Stream<Item = Result<Event, Error>> + Send {
        page::stream(self, |history, token| async move { history.page(token).await })
    }

    /// All of them at once.
    pub async fn all(&self) -> Result<Vec<Event>, Error> {
        page::all(self.clone().stream()).await
    }

    fn change(mut self, set: impl FnOnce(&mut v1::ListRunEventsRequest)) -> Self {
        set(&mut self.request);
        self
    }
}
