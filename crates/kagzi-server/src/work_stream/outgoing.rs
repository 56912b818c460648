//! What waits to be written to a worker. Bounded in bytes by its owner, who looks before it adds, and never a
//! reason to wait: whoever writes to a slow reader must go on hearing its heartbeats.

use std::{collections::VecDeque, pin::Pin, sync::Arc, task, time::Duration};

use futures_util::stream::Stream;
use kagzi_model::LeaseRef;
use kagzi_proto::v1::{self, server_message::Message as Down};
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// Both ends of one worker's queue.
pub fn channel() -> (Outbox, Outgoing) {
    let shared = Arc::new(Shared::default());
    (Outbox { shared: shared.clone() }, Outgoing { shared })
}

/// The writing end.
pub struct Outbox {
    shared: Arc<Shared>,
}

/// What the worker reads.
pub struct Outgoing {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    pulled: Notify,
    /// The reading end is gone.
    gone: CancellationToken,
}

#[derive(Default)]
struct State {
    messages: VecDeque<Waiting>,
    bytes: usize,
    /// Of all but runs.
    answer_bytes: usize,
    /// How the stream ends once everything is read.
    end: Option<Option<Status>>,
    reader: Option<task::Waker>,
    /// The owner waits until there are fewer bytes than this.
    wanted: Option<usize>,
    /// When the reader last took something, or when something began to wait.
    moved_at: Option<Instant>,
}

struct Waiting {
    message: Down,
    bytes: usize,
    /// The run that this message is a part of handing over.
    run: Option<Arc<LeaseRef>>,
}

impl Waiting {
    fn answer_bytes(&self) -> usize {
        if self.run.is_none() { self.bytes } else { 0 }
    }
}

impl Outbox {
    /// Adds a message of about so many bytes. Refused when nobody reads any more.
    pub fn send(&self, message: Down, bytes: usize) -> Result<(), Status> {
        self.add(Waiting { message, bytes, run: None })
    }

    /// Adds the messages that hand a run over.
    pub fn send_run(&self, lease: LeaseRef, messages: Vec<(Down, usize)>) -> Result<(), Status> {
        let lease = Arc::new(lease);
        messages
            .into_iter()
            .try_for_each(|(message, bytes)| self.add(Waiting { message, bytes, run: Some(lease.clone()) }))
    }

    fn add(&self, waiting: Waiting) -> Result<(), Status> {
        if self.shared.gone.is_cancelled() {
            return Err(gone());
        }
        let mut state = self.shared.state.lock();
        if state.messages.is_empty() {
            state.moved_at = Some(Instant::now());
        }
        state.bytes += waiting.bytes;
        state.answer_bytes += waiting.answer_bytes();
        state.messages.push_back(waiting);
        if let Some(reader) = state.reader.take() {
            drop(state);
            reader.wake();
        }
        Ok(())
    }

    /// How much waits to be read.
    pub fn bytes(&self) -> usize {
        self.shared.state.lock().bytes
    }

    /// How much of it is answers and news, and not runs.
    pub fn answer_bytes(&self) -> usize {
        self.shared.state.lock().answer_bytes
    }

    /// Returns when less than this waits to be read.
    pub async fn below(&self, bytes: usize) {
        loop {
            {
                let mut state = self.shared.state.lock();
                if state.bytes < bytes {
                    return;
                }
                state.wanted = Some(bytes);
            }
            self.shared.pulled.notified().await;
        }
    }

    /// Returns when nobody reads any more.
    pub async fn gone(&self) -> Status {
        self.shared.gone.cancelled().await;
        gone()
    }

    /// For how long nothing was taken of what waits.
    pub fn stalled_for(&self) -> Duration {
        let state = self.shared.state.lock();
        match state.moved_at {
            Some(moved_at) if !state.messages.is_empty() => moved_at.elapsed(),
            Some(_) | None => Duration::ZERO,
        }
    }

    /// The runs that are not handed over as a whole yet.
    pub fn undelivered(&self) -> Vec<LeaseRef> {
        let state = self.shared.state.lock();
        let mut leases: Vec<_> = state.messages.iter().filter_map(|waiting| waiting.run.as_deref()).collect();
        leases.dedup_by_key(|lease| lease.run);
        leases.into_iter().cloned().collect()
    }

    /// The same, and they will not be: their messages are taken out.
    pub fn take_undelivered(&self) -> Vec<LeaseRef> {
        let leases = self.undelivered();
        let mut state = self.shared.state.lock();
        state.messages.retain(|waiting| waiting.run.is_none());
        state.bytes = state.messages.iter().map(|waiting| waiting.bytes).sum();
        leases
    }

    /// Ends the stream behind what waits, with the reason if it is a bad one.
    pub fn end(&self, status: Option<Status>) {
        let mut state = self.shared.state.lock();
        state.end = Some(status);
        if let Some(reader) = state.reader.take() {
            drop(state);
            reader.wake();
        }
    }
}

fn gone() -> Status {
    Status::cancelled("the worker is gone")
}

impl Stream for Outgoing {
    type Item = Result<v1::ServerMessage, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> task::Poll<Option<Self::Item>> {
        let mut state = self.shared.state.lock();
        if let Some(waiting) = state.messages.pop_front() {
            state.bytes -= waiting.bytes;
            state.answer_bytes -= waiting.answer_bytes();
            state.moved_at = Some(Instant::now());
            if state.wanted.is_some_and(|wanted| state.bytes < wanted) {
                state.wanted = None;
                self.shared.pulled.notify_one();
            }
            return task::Poll::Ready(Some(Ok(v1::ServerMessage { message: Some(waiting.message) })));
        }
        match &mut state.end {
            Some(status) => task::Poll::Ready(status.take().map(Err)),
            None => {
                state.reader = Some(cx.waker().clone());
                task::Poll::Pending
            }
        }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.shared.gone.cancel();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};
    use kagzi_model::{Name, RunId};
    use uuid::Uuid;

    use super::*;

    fn drain() -> Down {
        Down::Drain(v1::DrainOrder::default())
    }

    fn lease(number: u128) -> LeaseRef {
        LeaseRef { namespace: Name::from("shop"), run: RunId(Uuid::from_u128(number)), epoch: 1 }
    }

    #[test]
    fn bytes_are_counted_until_they_are_read_and_room_is_told() {
        let (outbox, mut outgoing) = channel();
        outbox.send(drain(), 10).unwrap();
        outbox.send(drain(), 20).unwrap();

        assert_eq!((outbox.bytes(), outbox.answer_bytes()), (30, 30));
        assert!(outbox.below(15).now_or_never().is_none());
        assert!(outgoing.next().now_or_never().flatten().is_some());
        assert!(outbox.below(15).now_or_never().is_none());
        assert!(outgoing.next().now_or_never().flatten().is_some());
        assert!(outbox.below(15).now_or_never().is_some());
        assert_eq!((outbox.bytes(), outbox.answer_bytes()), (0, 0));
    }

    #[test]
    fn a_run_is_undelivered_until_its_last_message_is_read() {
        let (outbox, mut outgoing) = channel();
        outbox.send_run(lease(1), vec![(drain(), 1), (drain(), 1)]).unwrap();
        outbox.send_run(lease(2), vec![(drain(), 1)]).unwrap();

        assert!(outgoing.next().now_or_never().flatten().is_some());
        assert_eq!(outbox.undelivered(), [lease(1), lease(2)]);
        assert_eq!((outbox.bytes(), outbox.answer_bytes()), (2, 0));
        assert!(outgoing.next().now_or_never().flatten().is_some());
        assert_eq!(outbox.undelivered(), [lease(2)]);
        assert_eq!(outbox.take_undelivered(), [lease(2)]);
        assert_eq!((outbox.undelivered(), outbox.bytes()), (vec![], 0));
    }

    #[test]
    fn the_end_comes_behind_what_waits_and_nothing_is_taken_without_a_reader() {
        let (outbox, mut outgoing) = channel();
        outbox.send(drain(), 1).unwrap();
        outbox.end(Some(Status::aborted("enough")));

        assert!(outgoing.next().now_or_never().flatten().is_some_and(|message| message.is_ok()));
        assert!(outgoing.next().now_or_never().flatten().is_some_and(|message| message.is_err()));
        assert_eq!(outgoing.next().now_or_never().map(|end| end.is_none()), Some(true));
        drop(outgoing);
        assert!(outbox.send(drain(), 1).is_err());
    }
}
