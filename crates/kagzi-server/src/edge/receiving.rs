//! Messages on their way in: how many bytes of them are held, and for how long.
//!
//! A message announces its length in its first five bytes and may then take its time. Thousands of streams
//! that stop just before the end would hold gigabytes for as long as somebody answers pings. So a message
//! that does not come at once takes its announced length out of a budget that all connections share, and has
//! to arrive in time. One that finds no room waits before anything of it is kept, so nobody holds a part of
//! the budget while waiting for the rest.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body::{Body as HttpBody, Frame, SizeHint};
use kagzi_proto::Reason;
use parking_lot::Mutex;
use tokio::{
    sync::{AcquireError, OwnedSemaphorePermit, Semaphore},
    time::Sleep,
};
use tonic::{Status, body::Body};

use super::{CallStats, EdgeSettings, MethodStats};

/// A message of gRPC begins with a flag and its length.
const PREFIX_BYTES: usize = 5;
/// Messages below this that arrive in one piece are not worth an entry in the books.
const SMALL_BYTES: usize = 16 * 1024;

/// The bytes that all connections share.
#[derive(Clone)]
pub struct Budget {
    bytes: Arc<Semaphore>,
    /// No message is longer; one that announces more is refused by its service at once.
    message_bytes_max: usize,
    message_timeout: Duration,
}

impl Budget {
    pub fn new(settings: &EdgeSettings, message_bytes_max: usize) -> Budget {
        let bytes = settings.receiving_bytes_max.min(Semaphore::MAX_PERMITS);
        Budget {
            bytes: Arc::new(Semaphore::new(bytes)),
            message_bytes_max,
            message_timeout: settings.message_timeout,
        }
    }
}

/// What a request holds of the budget, shared by its body and by whoever waits for the answer.
#[derive(Clone, Default)]
pub struct Held {
    permit: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
    stream: bool,
}

impl Held {
    /// The call is answered. A stream goes on receiving; its messages are given back one by one.
    pub fn answered(&self) {
        if !self.stream {
            self.permit.lock().take();
        }
    }
}

/// The next request's books.
pub struct Receiving {
    budget: Budget,
    held: Held,
    stats: Arc<CallStats>,
}

impl Receiving {
    pub fn of(budget: &Budget, method: &MethodStats, stats: Arc<CallStats>) -> (Receiving, Held) {
        let held = Held { stream: method.stream, ..Held::default() };
        (Receiving { budget: budget.clone(), held: held.clone(), stats }, held)
    }

    pub fn wrap(self, body: Body) -> Body {
        Body::new(Incoming {
            body,
            books: self,
            position: Position::default(),
            deadline: None,
            acquiring: None,
            waiting: None,
        })
    }
}

/// Where in the sequence of messages the body stands.
#[derive(Debug, Default, PartialEq, Eq)]
struct Position {
    prefix: [u8; PREFIX_BYTES],
    /// How much of the prefix is known; the message follows when it is complete.
    prefix_len: usize,
    /// Bytes of the message that are still to come.
    left: usize,
    /// Whether any message has been complete.
    complete: bool,
}

/// What a piece of the body began and ended.
#[derive(Debug, Default, PartialEq, Eq)]
struct Passed {
    /// Bytes that the messages take which began in this piece and are not complete, or are large.
    announced: usize,
    /// The message that was under way before this piece is complete.
    ended: bool,
}

impl Position {
    /// Nothing of a message has arrived, or everything of the last one.
    fn between(&self) -> bool {
        self.prefix_len == 0 && self.left == 0
    }

    fn pass(&mut self, mut piece: &[u8], message_bytes_max: usize) -> Passed {
        let mut passed = Passed::default();
        while !piece.is_empty() {
            if self.prefix_len < PREFIX_BYTES {
                self.prefix[self.prefix_len] = piece[0];
                self.prefix_len += 1;
                piece = &piece[1..];
                if self.prefix_len < PREFIX_BYTES {
                    continue;
                }
                let [_, length @ ..] = self.prefix;
                self.left = u32::from_be_bytes(length) as usize;
                // An oversize message is refused as soon as its service sees the prefix.
                let counted =
                    self.left <= message_bytes_max && (self.left > piece.len() || self.left >= SMALL_BYTES);
                passed.announced += if counted { self.left } else { 0 };
            }
            let taken = self.left.min(piece.len());
            self.left -= taken;
            piece = &piece[taken..];
            if self.left == 0 {
                self.prefix_len = 0;
                self.complete = true;
                passed.ended = true;
            }
        }
        passed
    }
}

type Acquiring = BoxFuture<'static, Result<OwnedSemaphorePermit, AcquireError>>;

/// A body that keeps its books.
struct Incoming {
    body: Body,
    books: Receiving,
    position: Position,
    deadline: Option<Pin<Box<Sleep>>>,
    acquiring: Option<Acquiring>,
    /// The piece that waits for room.
    waiting: Option<Frame<Bytes>>,
}

impl Incoming {
    /// Whether the peer owes us bytes: half a message, or the only one of a unary call.
    fn owed(&self) -> bool {
        !self.position.between() || (!self.books.held.stream && !self.position.complete)
    }

    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<Status> {
        let timeout = self.books.budget.message_timeout;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        ready!(deadline.as_mut().poll(cx));
        let room = if self.waiting.is_some() { "; the server has no room for it now" } else { "" };
        Poll::Ready(Reason::CallTimeout.status(format!(
            "the message did not arrive whole within {} s (server.message_timeout){room}",
            timeout.as_secs_f64()
        )))
    }
}

impl HttpBody for Incoming {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        loop {
            if let Some(acquiring) = &mut this.acquiring {
                match acquiring.as_mut().poll(cx) {
                    Poll::Ready(permit) => {
                        this.acquiring = None;
                        *this.books.held.permit.lock() = permit.ok();
                    }
                    Poll::Pending => return this.poll_deadline(cx).map(|late| Some(Err(late))),
                }
            }
            if let Some(frame) = this.waiting.take() {
                return Poll::Ready(Some(Ok(frame)));
            }
            let frame = match Pin::new(&mut this.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(other) => return Poll::Ready(other),
                Poll::Pending if this.owed() => {
                    return this.poll_deadline(cx).map(|late| Some(Err(late)));
                }
                Poll::Pending => return Poll::Pending,
            };
            let Some(data) = frame.data_ref() else { return Poll::Ready(Some(Ok(frame))) };
            this.books.stats.received(data.len());
            let budget = &this.books.budget;
            let passed = this.position.pass(data, budget.message_bytes_max);
            if passed.ended {
                this.deadline = None;
                if this.books.held.stream {
                    this.books.held.permit.lock().take();
                }
            }
            if passed.announced == 0 {
                return Poll::Ready(Some(Ok(frame)));
            }
            let bytes = u32::try_from(passed.announced).unwrap_or(u32::MAX);
            this.acquiring = Some(Box::pin(budget.bytes.clone().acquire_many_owned(bytes)));
            this.waiting = Some(frame);
        }
    }

    fn is_end_stream(&self) -> bool {
        self.waiting.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(len: usize) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend(u32::try_from(len).unwrap().to_be_bytes());
        bytes.extend(vec![7; len]);
        bytes
    }

    #[test]
    fn whole_small_messages_cost_nothing_and_half_ones_what_they_announce() {
        let mut position = Position::default();
        let two = [message(10), message(0)].concat();
        assert_eq!(position.pass(&two, 1 << 20), Passed { announced: 0, ended: true });
        assert!(position.between());

        let large = message(100_000);
        assert_eq!(position.pass(&large[..3], 1 << 20), Passed::default());
        assert!(!position.between());
        assert_eq!(position.pass(&large[3..50], 1 << 20), Passed { announced: 100_000, ended: false });
        assert_eq!(position.pass(&large[50..], 1 << 20), Passed { announced: 0, ended: true });
        assert!(position.between());
    }

    #[test]
    fn the_end_of_one_message_and_the_beginning_of_the_next_are_told_apart() {
        let mut position = Position::default();
        let both = [message(20), message(9_000)].concat();

        assert_eq!(position.pass(&both[..6], 1 << 20), Passed { announced: 20, ended: false });
        assert_eq!(position.pass(&both[6..40], 1 << 20), Passed { announced: 9_000, ended: true });
        assert_eq!(position.pass(&both[40..], 1 << 20), Passed { announced: 0, ended: true });
    }

    #[test]
    fn a_message_that_is_refused_anyway_waits_for_no_room() {
        let mut position = Position::default();
        assert_eq!(position.pass(&message(100)[..9], 64), Passed::default());
    }
}
