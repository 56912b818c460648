//! What waits in front of a lane: bounded in messages and in bytes, with signs of life ahead of everything
//! else.
//!
//! A heartbeat that waits behind thousands of starts is a heartbeat that comes too late, and then living
//! workers lose their runs. Large messages are let in by their bytes: four thousand of two megabytes would be
//! eight gigabytes.

use std::sync::Arc;

use tokio::sync::{
    OwnedSemaphorePermit, Semaphore,
    mpsc::{self, error::TryRecvError, error::TrySendError},
};

use super::Message;

/// Payloads that may wait, in KiB. One message larger than all of it is let in alone.
const WAITING_KIB_MAX: u32 = 256 * 1024;
/// Messages below this are counted by their number only.
const SMALL_BYTES: usize = 16 * 1024;
/// Heartbeats that may wait.
const BEATS_LEN_MAX: usize = 1024;

/// A message and the room that it takes.
struct Waiting {
    message: Message,
    room: Option<OwnedSemaphorePermit>,
}

/// The side that sends.
#[derive(Clone)]
pub(super) struct QueueSender {
    ordinary: mpsc::Sender<Waiting>,
    beats: mpsc::Sender<Message>,
    room: Arc<Semaphore>,
}

/// The side of the lane.
pub(super) struct Queue {
    ordinary: mpsc::Receiver<Waiting>,
    beats: mpsc::Receiver<Message>,
    /// The room of the messages of this turn: given back when they are answered.
    taken: Vec<OwnedSemaphorePermit>,
}

pub(super) fn queue(len_max: usize) -> (QueueSender, Queue) {
    let (ordinary, ordinary_in) = mpsc::channel(len_max);
    let (beats, beats_in) = mpsc::channel(BEATS_LEN_MAX);
    let room = Arc::new(Semaphore::new(WAITING_KIB_MAX as usize));
    (
        QueueSender { ordinary, beats, room },
        Queue { ordinary: ordinary_in, beats: beats_in, taken: Vec::new() },
    )
}

impl QueueSender {
    /// Waits for room and sends. False when the lane is gone.
    pub async fn send(&self, message: Message) -> bool {
        if is_sign_of_life(&message) {
            return self.beats.send(message).await.is_ok();
        }
        let bytes = message.bytes();
        let room = match bytes < SMALL_BYTES {
            true => None,
            false => {
                let kib = u32::try_from(bytes / 1024).unwrap_or(u32::MAX).min(WAITING_KIB_MAX);
                let Ok(room) = self.room.clone().acquire_many_owned(kib).await else { return false };
                Some(room)
            }
        };
        self.ordinary.send(Waiting { message, room }).await.is_ok()
    }

    /// Sends a hint, if there is room. False when there is none, or the lane is gone.
    pub fn hint(&self, message: Message) -> bool {
        match self.ordinary.try_send(Waiting { message, room: None }) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Closed(_)) => false,
        }
    }
}

impl Queue {
    /// The next message; none when every sender is gone.
    pub async fn recv(&mut self) -> Option<Message> {
        tokio::select! {
            biased;
            Some(beat) = self.beats.recv() => Some(beat),
            waiting = self.ordinary.recv() => waiting.map(|waiting| self.take(waiting)),
        }
    }

    /// The next message, if one waits.
    pub fn try_recv(&mut self) -> Result<Message, TryRecvError> {
        if let Ok(beat) = self.beats.try_recv() {
            return Ok(beat);
        }
        let waiting = self.ordinary.try_recv()?;
        Ok(self.take(waiting))
    }

    fn take(&mut self, Waiting { message, room }: Waiting) -> Message {
        self.taken.extend(room);
        message
    }

    /// The turn is over.
    pub fn give_room_back(&mut self) {
        self.taken.clear();
    }

    /// How many messages wait.
    pub fn len(&self) -> usize {
        self.ordinary.len() + self.beats.len()
    }
}

/// A heartbeat that only says which leases are alive. One that also tells of lost deliveries must not
/// overtake the reports that its worker sent before it.
fn is_sign_of_life(message: &Message) -> bool {
    message.beat().is_some_and(|beat| beat.unlisted_after_ms.is_none() && !beat.reconnected)
}

#[cfg(test)]
mod tests {
    use kagzi_model::{Command, Payload, RunId, RunOptions, StartRun, WorkerId};
    use uuid::Uuid;

    use super::*;
    use crate::{
        Beat,
        lane::{Ask, Request},
    };

    fn start(bytes: usize) -> Message {
        let id = RunId(Uuid::now_v7());
        let start = StartRun {
            namespace: "shop".into(),
            id,
            business_id: None,
            workflow_type: "charge".into(),
            task_queue: "orders".into(),
            input: Payload::new(vec![0; bytes]),
            deadline_at: None,
            options: RunOptions::default(),
            labels: Default::default(),
            signals: Vec::new(),
        };
        Request::message(Ask::new(vec![Command::start(start)]).0)
    }

    #[tokio::test]
    async fn a_heartbeat_overtakes_what_waits() {
        let (sender, mut queue) = queue(16);
        for _ in 0..10 {
            assert!(sender.send(start(10)).await);
        }
        let id = WorkerId(Uuid::now_v7());
        let (runs, unlisted_after_ms) = (Vec::new(), None);
        let beat = Beat {
            id,
            runs,
            lease_ms: 1,
            unlisted_after_ms,
            reconnected: false,
            listed_before: Vec::new(),
            of: None,
        };
        assert!(sender.send(Request::message(Ask::new(beat).0)).await);

        assert!(matches!(queue.recv().await, Some(Message::Beat(_))));
        assert_eq!(queue.len(), 10);
    }

    #[tokio::test]
    async fn large_messages_wait_for_room_in_bytes_and_small_ones_do_not() {
        let (sender, mut queue) = queue(4096);
        let half = WAITING_KIB_MAX as usize * 1024 / 2;
        assert!(sender.send(start(half)).await && sender.send(start(half)).await);

        let third = sender.send(start(1024 * 1024));
        tokio::pin!(third);
        assert!(futures_util::poll!(third.as_mut()).is_pending(), "there is no room for it");
        assert!(sender.send(start(10)).await, "a small one is let in");
        queue.recv().await;
        assert!(futures_util::poll!(third.as_mut()).is_pending(), "the turn is not over");
        queue.give_room_back();

        assert!(third.await);
    }
}
