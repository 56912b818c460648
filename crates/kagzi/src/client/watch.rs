//! Watches: streams of what happens, which go on where they were when a connection breaks.

use std::collections::HashMap;
use std::future::Future;

use futures_util::Stream;
use futures_util::stream::try_unfold;
use kagzi_proto::v1;
use tonic::{Status, Streaming};

use crate::admin::{Gate, Queue};
use crate::client::Client;
use crate::client::outage::Outage;
use crate::client::run::Run;
use crate::client::wire::{Admins, Rpc, Workflows};
use crate::error::Error;
use crate::history::Event;

/// What has changed since the message before. The first message has all that there is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Changes<T> {
    /// Those that are new or look different.
    pub changed: Vec<T>,
    /// Names of those that no longer belong to what is watched.
    pub gone: Vec<String>,
}

/// What is watched, and how far it was told.
trait Watched: Send + 'static {
    type Message: Send + 'static;
    type News: Send + 'static;

    const ATTEMPTED: &'static str;

    /// Opens a stream that goes on behind what was told.
    fn open(&mut self, rpc: Rpc) -> impl Future<Output = Result<Streaming<Self::Message>, Status>> + Send;

    /// What a message says that was not told before. `first` is the first one of its stream.
    fn take(
        &mut self,
        client: &Client,
        message: Self::Message,
        first: bool,
    ) -> impl Future<Output = Result<Vec<Self::News>, Error>> + Send;
}

struct Watching<W: Watched> {
    client: Client,
    watched: W,
    stream: Option<Streaming<W::Message>>,
    first: bool,
    outage: Outage,
    news: std::vec::IntoIter<W::News>,
}

fn watch<W: Watched>(
    client: Client,
    watched: W,
) -> impl Stream<Item = Result<W::News, Error>> + Send + 'static {
    let (outage, news) = (Outage::default(), Vec::new().into_iter());
    let watching = Watching { client, watched, stream: None, first: true, outage, news };
    try_unfold(watching, async |mut watching| Ok(watching.next().await?.map(|news| (news, watching))))
}

impl<W: Watched> Watching<W> {
    async fn next(&mut self) -> Result<Option<W::News>, Error> {
        loop {
            if let Some(news) = self.news.next() {
                return Ok(Some(news));
            }
            let Some(stream) = &mut self.stream else {
                match self.open().await {
                    Ok(stream) => (self.stream, self.first) = (Some(stream), true),
                    Err(error) => self.outage.bear(error).await?,
                }
                continue;
            };
            match stream.message().await {
                Ok(Some(message)) => {
                    self.outage = Outage::default();
                    self.news = self.watched.take(&self.client, message, self.first).await?.into_iter();
                    self.first = false;
                }
                Ok(None) => return Ok(None),
                Err(status) => {
                    self.stream = None;
                    let error = Error::refused(W::ATTEMPTED, &status);
                    self.client.lost(&error);
                    self.outage.bear(error).await?;
                }
            }
        }
    }

    async fn open(&mut self) -> Result<Streaming<W::Message>, Error> {
        let server = self.client.server().await?;
        let timeout = self.client.way.calls.timeout;
        self.client.ask_once(W::ATTEMPTED, timeout, self.watched.open(Rpc(server.wire.clone()))).await
    }
}

/// A run's history behind a sequence number.
pub(crate) fn history(
    client: Client,
    run_id: String,
    after_sequence: u64,
) -> impl Stream<Item = Result<Event, Error>> + Send + 'static {
    let run = Some(v1::RunRef { r#ref: Some(v1::run_ref::Ref::RunId(run_id)) });
    let namespace_id = client.namespace_id().to_owned();
    watch(client, History(v1::WatchRunRequest { run, namespace_id, after_sequence }))
}

struct History(v1::WatchRunRequest);

impl Watched for History {
    type Message = v1::WatchRunResponse;
    type News = Event;

    const ATTEMPTED: &'static str = "watch a run";

    async fn open(&mut self, rpc: Rpc) -> Result<Streaming<v1::WatchRunResponse>, Status> {
        Ok(Workflows::from(rpc).watch_run(self.0.clone()).await?.into_inner())
    }

    async fn take(
        &mut self,
        client: &Client,
        message: v1::WatchRunResponse,
        _: bool,
    ) -> Result<Vec<Event>, Error> {
        let mut events = Vec::with_capacity(message.events.len());
        for mut event in message.events {
            let decoded = client.codecs.decode_event(&mut event).await;
            decoded.map_err(|error| Error::undecodable("the run's history", &error))?;
            self.0.after_sequence = event.sequence;
            events.push(Event::from_proto(event));
        }
        Ok(events)
    }
}

/// The newest runs that match.
pub(crate) fn runs(
    client: Client,
    filter: v1::ListWorkflowRunsRequest,
) -> impl Stream<Item = Result<Changes<Run>, Error>> + Send + 'static {
    let request = v1::WatchRunsRequest { filter: Some(filter) };
    watch(client, Runs { request, told: Told::default() })
}

struct Runs {
    request: v1::WatchRunsRequest,
    told: Told<Run>,
}

impl Watched for Runs {
    type Message = v1::WatchRunsResponse;
    type News = Changes<Run>;

    const ATTEMPTED: &'static str = "watch runs";

    async fn open(&mut self, rpc: Rpc) -> Result<Streaming<v1::WatchRunsResponse>, Status> {
        Ok(Workflows::from(rpc).watch_runs(self.request.clone()).await?.into_inner())
    }

    async fn take(
        &mut self,
        client: &Client,
        message: v1::WatchRunsResponse,
        first: bool,
    ) -> Result<Vec<Changes<Run>>, Error> {
        let mut runs = Vec::with_capacity(message.workflow_runs.len());
        for run in message.workflow_runs {
            let run = client.readable(run).await;
            runs.push((run.run_id.clone(), run));
        }
        Ok(self.told.news(runs, message.gone, first).into_iter().collect())
    }
}

/// Queues of a namespace, and the gate before all of them.
pub(crate) fn queues(
    client: Client,
    request: v1::WatchQueuesRequest,
) -> impl Stream<Item = Result<(Changes<Queue>, Gate), Error>> + Send + 'static {
    watch(client, Queues { request, gate: Gate::default(), told: Told::default() })
}

struct Queues {
    request: v1::WatchQueuesRequest,
    gate: Gate,
    told: Told<Queue>,
}

impl Watched for Queues {
    type Message = v1::WatchQueuesResponse;
    type News = (Changes<Queue>, Gate);

    const ATTEMPTED: &'static str = "watch queues";

    async fn open(&mut self, rpc: Rpc) -> Result<Streaming<v1::WatchQueuesResponse>, Status> {
        Ok(Admins::from(rpc).watch_queues(self.request.clone()).await?.into_inner())
    }

    async fn take(
        &mut self,
        _: &Client,
        message: v1::WatchQueuesResponse,
        first: bool,
    ) -> Result<Vec<(Changes<Queue>, Gate)>, Error> {
        let queues = message.queues.into_iter().map(Queue::from_proto);
        let queues = queues.map(|queue| (queue.task_queue.clone(), queue)).collect();
        let gate = Gate::from_proto(message.namespace_gate);
        let moved = gate != self.gate;
        self.gate = gate.clone();
        let nothing = || moved.then(|| Changes { changed: Vec::new(), gone: Vec::new() });
        let changes = self.told.news(queues, message.gone, first).or_else(nothing);
        Ok(changes.map(|changes| (changes, gate)).into_iter().collect())
    }
}

/// What the reader knows already. A new stream begins with everything, and only what is different now is
/// told again.
struct Told<T> {
    known: Option<HashMap<String, T>>,
}

impl<T> Default for Told<T> {
    fn default() -> Told<T> {
        Told { known: None }
    }
}

impl<T: Clone + PartialEq> Told<T> {
    fn news(
        &mut self,
        named: Vec<(String, T)>,
        mut gone: Vec<String>,
        everything: bool,
    ) -> Option<Changes<T>> {
        let newcomer = self.known.is_none();
        let known = self.known.get_or_insert_default();
        if everything {
            let there: HashMap<&str, ()> = named.iter().map(|(name, _)| (name.as_str(), ())).collect();
            gone.extend(known.keys().filter(|name| !there.contains_key(name.as_str())).cloned());
            gone.sort_unstable();
        }
        gone.retain(|name| known.remove(name).is_some());
        let mut changed = Vec::new();
        for (name, item) in named {
            if known.get(&name) != Some(&item) {
                known.insert(name, item.clone());
                changed.push(item);
            }
        }
        (newcomer || !changed.is_empty() || !gone.is_empty()).then_some(Changes { changed, gone })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_stream_tells_only_what_has_changed_since_the_old_one() {
        let mut told = Told::default();
        let mut news = |all: &[(&str, u32)], gone: &[&str], everything| {
            let named = all.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            let gone = gone.iter().map(|name| (*name).to_owned()).collect();
            told.news(named, gone, everything).map(|news| (news.changed, news.gone.join(" ")))
        };

        assert_eq!(news(&[], &[], true), Some((vec![], String::new())), "there is nothing, which is news");
        assert_eq!(news(&[("a", 1), ("b", 2)], &[], false), Some((vec![1, 2], String::new())));
        assert_eq!(news(&[("c", 3)], &["a"], false), Some((vec![3], "a".into())));
        // The connection broke. Meanwhile b went, and c changed.
        assert_eq!(news(&[("c", 4), ("d", 5)], &[], true), Some((vec![4, 5], "b".into())));
        // It broke again, and nothing happened.
        assert_eq!(news(&[("c", 4), ("d", 5)], &[], true), None);
    }
}
