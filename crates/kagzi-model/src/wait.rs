//! What a step waits for, and a parked run with it. One kind of wait has one file under `wait/`.
//!
//! A wait has a time at which it is over by itself, or none, when only somebody's act ends it. A new kind is
//! a variant here and a file with its meaning; whoever parks, claims or explains a run asks the functions
//! below and need not know the kinds.

mod child;
mod event;
mod parked;
mod person;
mod retry;
mod signal;
mod timer;

pub use parked::{Parked, Wake};

use crate::{
    Failure, Name, Reason, Status, Timestamp, family::is_child_channel, intervention::is_person_channel,
    topic::is_event_channel,
};

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// A time: the code sleeps.
    Timer { until: Timestamp },
    /// The next attempt, after this failure.
    Retry { at: Timestamp, failure: Failure },
    /// A signal on a channel, or an event that is published on a topic; by itself it is over at `until`, if
    /// there is such a time.
    Signal { channel: Name, until: Option<Timestamp> },
    /// The end of a child, which is told on a channel of its own.
    Child { channel: Name, until: Option<Timestamp> },
    /// The answer of a person, which is told on a channel of its step. Its time is the question's own.
    Person { channel: Name, until: Option<Timestamp> },
}

impl Wait {
    /// A wait for whatever is told on this channel.
    pub fn on(channel: Name, until: Option<Timestamp>) -> Wait {
        if is_child_channel(&channel) {
            Wait::Child { channel, until }
        } else if is_person_channel(&channel) {
            Wait::Person { channel, until }
        } else {
            Wait::Signal { channel, until }
        }
    }

    /// When it is over by itself.
    pub fn due_at(&self) -> Option<Timestamp> {
        match self {
            Wait::Timer { until } => Some(*until),
            Wait::Retry { at, .. } => Some(*at),
            Wait::Signal { until, .. } | Wait::Child { until, .. } | Wait::Person { until, .. } => *until,
        }
    }

    /// The reason to wake of a run that waits for it.
    pub fn reason(&self) -> Reason {
        match self {
            Wait::Timer { .. } => timer::REASON,
            Wait::Retry { .. } => retry::REASON,
            Wait::Signal { channel, .. } if is_event_channel(channel) => event::REASON,
            Wait::Signal { .. } => signal::REASON,
            Wait::Child { .. } => child::REASON,
            Wait::Person { .. } => person::REASON,
        }
    }

    /// The published status of a run that waits for it.
    pub fn status(&self) -> Status {
        self.reason().status()
    }

    /// The failure after which the next attempt is waited for.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Wait::Retry { failure, .. } => Some(failure),
            Wait::Timer { .. } | Wait::Signal { .. } | Wait::Child { .. } | Wait::Person { .. } => None,
        }
    }

    /// The channel on which somebody's word ends it.
    pub fn channel(&self) -> Option<&Name> {
        match self {
            Wait::Signal { channel, .. } | Wait::Child { channel, .. } | Wait::Person { channel, .. } => {
                Some(channel)
            }
            Wait::Timer { .. } | Wait::Retry { .. } => None,
        }
    }

    /// Time alone has ended the step for good. A retry is not over then: the step is executed again.
    pub fn is_over(&self, now: Timestamp) -> bool {
        match self {
            Wait::Timer { until } => *until <= now,
            Wait::Signal { until, .. } | Wait::Child { until, .. } | Wait::Person { until, .. } => {
                until.is_some_and(|until| until <= now)
            }
            Wait::Retry { .. } => false,
        }
    }

    /// "Retry now" means something to it.
    pub fn can_be_hurried(&self) -> bool {
        match self {
            Wait::Retry { .. } => true,
            Wait::Timer { .. } | Wait::Signal { .. } | Wait::Child { .. } | Wait::Person { .. } => false,
        }
    }

    /// A person said "now": a retry need not wait any longer, a sleep is never cut short.
    pub(crate) fn hurry(&mut self, now: Timestamp) {
        match self {
            Wait::Timer { .. } | Wait::Signal { .. } | Wait::Child { .. } | Wait::Person { .. } => {}
            Wait::Retry { at, .. } => *at = (*at).min(now),
        }
    }
}
