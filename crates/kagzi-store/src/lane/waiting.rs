//! What a lane without messages waits for.

use std::time::Duration;

use kagzi_model::Timestamp;
use tokio::sync::mpsc;

use super::{Lane, Message};
use crate::{Backend, Clock, Demand};

impl<B: Backend> Lane<B> {
    pub(super) async fn wait(&mut self) -> Wake {
        if self.stats.damage().is_some() {
            // Nothing is claimed any more; whoever asks is told why.
            return self.messages.recv().await.map_or(Wake::Closed, |asked| Wake::Message(Box::new(asked)));
        }
        let worker_cache = &self.worker_cache;
        let now = self.clock.now();
        let room = |demand: &Demand| worker_cache.room(demand);
        let cold = worker_cache.is_incomplete() && !self.board.workers().is_empty();
        let backlog = self.board.can_give(room);
        let owed = !self.returned.is_empty() || !self.unanswered.is_empty();
        let due = if cold || backlog || owed { Some(now) } else { self.board.next_due(room) };
        let steady = self.clock.steady();
        let poll_in = self.poll_at.map(|at| at.saturating_sub(steady));
        let held_for = self.claims_after.saturating_sub(steady);
        if due.is_none() && poll_in.is_none() {
            return self
                .messages
                .recv()
                .await
                .map_or(Wake::Closed, |message| Wake::Message(Box::new(message)));
        }
        let look = due.is_some_and(|due| due <= now) || poll_in.is_some_and(|left| left.is_zero());
        if look && held_for.is_zero() {
            return match self.messages.try_recv() {
                Ok(message) => Wake::Message(Box::new(message)),
                Err(mpsc::error::TryRecvError::Empty) => Wake::Timer,
                Err(mpsc::error::TryRecvError::Disconnected) => Wake::Closed,
            };
        }
        let clock = self.clock.clone();
        tokio::select! {
            biased;
            message = self.messages.recv() => {
                message.map_or(Wake::Closed, |message| Wake::Message(Box::new(message)))
            }
            () = pause(&*clock, Pause { held_for, due, poll_in }) => Wake::Timer,
        }
    }
}

/// What a lane without messages waits for.
struct Pause {
    /// First of all until claims are allowed again,
    held_for: Duration,
    /// then until a run is due by the shared clock,
    due: Option<Timestamp>,
    /// or until it is time to look for other servers' work.
    poll_in: Option<Duration>,
}

async fn pause(clock: &dyn Clock, pause: Pause) {
    if !pause.held_for.is_zero() {
        clock.sleep(pause.held_for).await;
    }
    let due = async {
        match pause.due {
            Some(at) => clock.sleep_until(at).await,
            None => std::future::pending().await,
        }
    };
    let poll = async {
        match pause.poll_in {
            Some(left) => clock.sleep(left.saturating_sub(pause.held_for)).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = due => {}
        () = poll => {}
    }
}

/// Why a lane stops waiting.
pub(super) enum Wake {
    Message(Box<Message>),
    Timer,
    Closed,
}
