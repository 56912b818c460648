//! Published events that are kept: for those who want to know what was published, and whether it arrived.

use std::time::SystemTime;

use futures_util::Stream;
use kagzi_proto::v1;

use crate::admin::Admin;
use crate::client::Client;
use crate::client::wire::rpc;
use crate::error::Error;
use crate::page::{self, Page};

/// An event that was published and is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptEvent {
    /// What kind of event it is.
    pub topic: String,
    /// Which one it is about, if it is about one.
    pub key: Option<String>,
    /// Counts once on its topic and key while it is kept.
    pub id: String,
    /// When it was published.
    pub published_at: SystemTime,
    /// Until when it is kept.
    pub expires_at: SystemTime,
    /// It has reached every run that waited for it.
    pub delivered: bool,
    /// How large its value is.
    pub payload_bytes: u64,
}

impl KeptEvent {
    fn from_proto(proto: v1::PublishedEvent) -> KeptEvent {
        let time = |at: Option<prost_types::Timestamp>| {
            at.and_then(|at| SystemTime::try_from(at).ok()).unwrap_or(SystemTime::UNIX_EPOCH)
        };
        KeptEvent {
            topic: proto.topic,
            key: (!proto.key.is_empty()).then_some(proto.key),
            id: proto.event_id,
            published_at: time(proto.published_at),
            expires_at: time(proto.expires_at),
            delivered: proto.delivered,
            payload_bytes: proto.payload_bytes,
        }
    }
}

impl Admin {
    /// The published events of the namespace that are kept, by topic, key and time. Nothing is asked yet.
    pub fn events(&self) -> KeptEvents {
        let namespace_id = self.namespace_id();
        let request = v1::ListPublishedEventsRequest { namespace_id, ..Default::default() };
        KeptEvents { client: self.client().clone(), request }
    }
}

/// Published events that are being asked for.
///
/// ```no_run
/// # async fn list(admin: kagzi::admin::Admin) -> anyhow::Result<()> {
/// use futures_util::TryStreamExt;
///
/// let list = admin.events().topic("order.paid").page_size(100).with_total();
/// let first = list.page("").await?;
/// println!("{} of {:?}", first.rows.len(), first.total);
/// let all = list.all().await?;
/// let streamed: Vec<_> = list.stream().try_collect().await?;
/// assert_eq!(all, streamed);
/// # Ok(()) }
/// ```
#[must_use = "nothing is asked before .page(..), .stream() or .all()"]
#[derive(Clone)]
pub struct KeptEvents {
    client: Client,
    request: v1::ListPublishedEventsRequest,
}

impl KeptEvents {
    /// Only events of this topic.
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.request.topic = topic.into();
        self
    }

    /// Events per page, at most 1000. Default: 50.
    pub fn page_size(mut self, events: u16) -> Self {
        self.request.page_size = events.into();
        self
    }

    /// Also count all of them, up to 10,000: [`Page::total`].
    pub fn with_total(mut self) -> Self {
        self.request.include_total = true;
        self
    }

    /// One page: the first for an empty token, else the one that the token of another page names.
    pub async fn page(&self, token: impl Into<String>) -> Result<Page<KeptEvent>, Error> {
        let request = v1::ListPublishedEventsRequest { page_token: token.into(), ..self.request.clone() };
        let page = rpc!(self.client, Admins.list_published_events, Safe, "list events", request)?;
        let events = page.events.into_iter().map(KeptEvent::from_proto).collect();
        let list = Page::new(events, page.next_page_token, page.prev_page_token);
        let list = list.without(page.unreadable_count);
        Ok(if self.request.include_total { list.counted(page.total_count, page.total_capped) } else { list })
    }

    /// All events, fetched page by page as they are taken.
    pub fn stream(self) -> impl Stream<Item = Result<KeptEvent, Error>> + Send {
        page::stream(self, |events, token| async move { events.page(token).await })
    }

    /// All of them at once.
    pub async fn all(&self) -> Result<Vec<KeptEvent>, Error> {
        page::all(self.clone().stream()).await
    }
}
