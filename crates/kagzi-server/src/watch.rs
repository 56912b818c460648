//! Watches: streams that tell how something changes.
//!
//! Nothing is kept for a reader that is slow. The transport asks for the next message when the last one is on
//! its way, and only then it is looked what has changed meanwhile: a watch costs one message, however long
//! nobody reads, and what changed twice in between is told once.

use std::{collections::HashMap, future::Future, pin::Pin, sync::Arc, time::Duration};

use futures_util::stream::{self, Stream};
use kagzi_proto::{Reason, Refusal};
use prost::Message;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use crate::services::Services;

/// Watches of one server at the same time, of all clients together. A connection has a limit on its streams
/// besides.
const WATCHES_MAX: usize = 1_000;

/// How long a watch that saw nothing new waits before it looks again: a little at first, for what happens at
/// once.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// What the client reads.
pub type Outgoing<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Room for watches.
#[derive(Clone)]
pub struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Room {
        Room(Arc::new(Semaphore::new(WATCHES_MAX)))
    }
}

impl Room {
    fn take(&self) -> Result<OwnedSemaphorePermit, Status> {
        self.0.clone().try_acquire_owned().map_err(|_| {
            let message =
                format!("this server has {WATCHES_MAX} watches already; close some, or ask another server");
            Refusal::new(Reason::QuotaExceeded, message).with("limit", WATCHES_MAX).status()
        })
    }
}

/// What one look found.
pub enum Look<T> {
    News(T),
    /// Nothing new yet.
    Nothing,
    /// Nothing new will ever come.
    End,
}

/// Something that can be looked at again and again.
pub trait Watch: Send + 'static {
    type News: Send + 'static;

    fn look(&mut self) -> impl Future<Output = Result<Look<Self::News>, Status>> + Send;
}

/// Looks until there is nothing more to see, the reader goes or the server stops.
pub fn open<W: Watch>(services: &Services, watch: W) -> Result<Outgoing<W::News>, Status> {
    let watching = Watching { watch, stop: services.stop.clone(), _room: services.watches.take()? };
    Ok(Box::pin(stream::unfold(Some(watching), async |watching| {
        let mut watching = watching?;
        match watching.next().await {
            Ok(Some(news)) => Some((Ok(news), Some(watching))),
            Ok(None) => None,
            Err(status) => Some((Err(status), None)),
        }
    })))
}

struct Watching<W> {
    watch: W,
    stop: tokio_util::sync::CancellationToken,
    _room: OwnedSemaphorePermit,
}

impl<W: Watch> Watching<W> {
    async fn next(&mut self) -> Result<Option<W::News>, Status> {
        let mut pause = PAUSE_MIN;
        loop {
            match self.watch.look().await? {
                Look::News(news) => return Ok(Some(news)),
                Look::End => return Ok(None),
                Look::Nothing => {}
            }
            if self.stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                return Err(Reason::ServerStopping.status("the server is stopping; watch another one"));
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

/// Which of many things have changed since they were told.
#[derive(Default)]
pub struct Told {
    by_key: Option<HashMap<String, Vec<u8>>>,
}

/// What has changed.
pub struct Changes<M> {
    pub changed: Vec<M>,
    pub gone: Vec<String>,
}

impl Told {
    /// Compares all that is there with what was told, and takes it as told. None when nothing has changed;
    /// the first time everything has.
    pub fn changes<M: Message>(&mut self, all: Vec<M>, key: impl Fn(&M) -> &str) -> Option<Changes<M>> {
        let first = self.by_key.is_none();
        let mut before = self.by_key.take().unwrap_or_default();
        let mut now = HashMap::with_capacity(all.len());
        let mut changed = Vec::new();
        for item in all {
            let bytes = item.encode_to_vec();
            let name = key(&item).to_owned();
            if before.remove(&name).as_ref() != Some(&bytes) {
                changed.push(item);
            }
            now.insert(name, bytes);
        }
        self.by_key = Some(now);
        let mut gone: Vec<String> = before.into_keys().collect();
        gone.sort_unstable();
        (first || !changed.is_empty() || !gone.is_empty()).then_some(Changes { changed, gone })
    }
}

#[cfg(test)]
mod tests {
    use kagzi_proto::v1::Queue;

    use super::*;

    fn queue(name: &str, ready: u64) -> Queue {
        Queue { task_queue: name.into(), ready, ..Queue::default() }
    }

    #[test]
    fn only_what_is_new_or_different_is_told_again() {
        let mut told = Told::default();
        let mut look = |queues: Vec<Queue>| {
            let changes = told.changes(queues, |queue| &queue.task_queue)?;
            let changed: Vec<String> = changes.changed.into_iter().map(|queue| queue.task_queue).collect();
            Some((changed.join(" "), changes.gone.join(" ")))
        };

        assert_eq!(
            look(vec![]),
            Some((String::new(), String::new())),
            "the first message says that there is nothing"
        );
        assert_eq!(look(vec![queue("a", 1), queue("b", 1)]), Some(("a b".into(), String::new())));
        assert_eq!(look(vec![queue("a", 1), queue("b", 1)]), None);
        assert_eq!(look(vec![queue("b", 2)]), Some(("b".into(), "a".into())));
    }
}
