//! How a worker ends: finish, give back, say goodbye. Every stage has a limit.

use std::time::Duration;

use kagzi_proto::v1::{self, worker_message};
use tokio::time::Instant;

use crate::limits;
use crate::worker::session::Session;

/// Only ever moves downwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Serving,
    /// Takes nothing new; runs in flight go on, and so do heartbeats, or they would be executed twice.
    Draining {
        until: Instant,
    },
    /// Everything was stopped or given back; the last reports wait for their acknowledgements.
    Releasing {
        until: Instant,
    },
    /// The goodbye was sent; the server closes the stream.
    Leaving {
        until: Instant,
    },
    Gone,
}

impl Phase {
    pub(crate) fn until(self) -> Option<Instant> {
        match self {
            Phase::Serving | Phase::Gone => None,
            Phase::Draining { until } | Phase::Releasing { until } | Phase::Leaving { until } => Some(until),
        }
    }

    pub(crate) fn is_serving(self) -> bool {
        self == Phase::Serving
    }
}

impl Session {
    pub(crate) fn begin_drain(&mut self, reason: &str) {
        if !self.phase.is_serving() {
            return;
        }
        tracing::info!(reason, in_flight = self.in_flight.executing().len(), "worker drains");
        self.phase = Phase::Draining { until: after(self.drain_timeout) };
        self.send_drain_notice();
    }

    pub(crate) fn send_drain_notice(&mut self) {
        self.outbox.push_notice(worker_message::Message::Draining(v1::DrainNotice {}));
    }

    /// Somebody is impatient: go to the next stage without waiting for this one.
    pub(crate) fn hurry(&mut self) {
        match self.phase {
            Phase::Serving => self.begin_drain("hurried"),
            Phase::Draining { .. } => self.release_all(),
            Phase::Releasing { .. } => self.leave(),
            Phase::Leaving { .. } => self.phase = Phase::Gone,
            Phase::Gone => {}
        }
    }

    /// Moves on when a stage is done or has taken too long.
    pub(crate) fn advance_drain(&mut self, now: Instant) {
        let over = self.phase.until().is_some_and(|until| now >= until);
        let settled = !self.outbox.has_unacknowledged();
        match self.phase {
            Phase::Serving | Phase::Gone => {}
            Phase::Draining { .. } if self.in_flight.is_empty() && settled => self.leave(),
            Phase::Draining { .. } if over => self.release_all(),
            Phase::Draining { .. } => {}
            Phase::Releasing { .. } if settled => self.leave(),
            Phase::Releasing { .. } if over => {
                tracing::warn!("the server did not confirm the last reports, its leases will expire");
                self.leave();
            }
            Phase::Releasing { .. } => {}
            Phase::Leaving { .. } if over => self.phase = Phase::Gone,
            Phase::Leaving { .. } => {}
        }
    }

    /// Stops what still runs and gives it back without counting as an attempt. A run that only waits for the
    /// acknowledgement of its end is left alone.
    fn release_all(&mut self) {
        self.take_inbox();
        self.in_flight.forget_arrivals();
        for lease in self.in_flight.executing() {
            if self.outbox.has_end_of(&lease) {
                continue;
            }
            tracing::info!(run = %lease.run_id, "run given back, the worker ends");
            self.in_flight.abort(&lease);
            self.outbox.push_release(lease, "the worker was drained");
        }
        self.phase = Phase::Releasing { until: after(limits::RELEASE_TIMEOUT) };
    }

    fn leave(&mut self) {
        let goodbye = worker_message::Message::Goodbye(v1::Goodbye {});
        match &self.wire {
            Some(_) if self.welcomed => self.outbox.push_notice(goodbye),
            // The server may know this worker already, although its welcome has not come: the goodbye follows
            // the hello. Else the worker would be taken for a living one until it is stale.
            Some(wire) if wire.try_send(v1::WorkerMessage { message: Some(goodbye) }).is_ok() => {}
            Some(_) | None => {
                self.phase = Phase::Gone;
                return;
            }
        }
        self.phase = Phase::Leaving { until: after(limits::GOODBYE_TIMEOUT) };
    }
}

/// Saturates: `Duration::MAX` is how users say "for ever".
fn after(duration: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(duration).unwrap_or_else(|| now + Duration::from_secs(365 * 24 * 3600))
}
