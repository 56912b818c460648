//! What follows a try to tell somebody something: the states of a message and its times. Pure: it is told
//! the time, and it knows no channel.

use std::sync::LazyLock;

use kagzi_model::{Millis, RetryPolicy, Timestamp, backoff_seed};

use crate::{Contact, Severity, State, clean};

/// A message is tried for so long; then it is given up, and somebody is told.
pub const TRIED_FOR_MS: Millis = 24 * 60 * 60_000;
/// A receiver that asks for patience is given at most this much at a time.
const PATIENCE_MAX_MS: Millis = 60 * 60_000;
/// Characters of an error that are kept.
const ERROR_CHARS_MAX: usize = 300;

/// The preset CRITICAL with all its times as much longer as a day is longer than its five minutes, so that a
/// short trouble costs half a minute and a long one is not hammered at. The day ends it, not a number of
/// tries.
static POLICY: LazyLock<RetryPolicy> = LazyLock::new(|| {
    let preset = RetryPolicy::preset("CRITICAL").expect("the catalogue has it");
    let within_ms = preset.retry_timeout_ms.expect("CRITICAL has a budget");
    let stretched = |ms: Option<Millis>| ms.map(|ms| ms * TRIED_FOR_MS / within_ms);
    RetryPolicy {
        maximum_attempts: Some(-1),
        initial_interval_ms: stretched(preset.initial_interval_ms),
        maximum_interval_ms: stretched(preset.maximum_interval_ms),
        retry_timeout_ms: Some(TRIED_FOR_MS),
        ..preset
    }
});

/// How a try went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has taken it.
    Taken,
    /// It may go well another time: the network, a receiver that is down, or something that an operator can
    /// mend for all messages, such as a password.
    Temporary {
        why: String,
        /// The receiver named a time.
        after_ms: Option<Millis>,
    },
    /// The receiver will never take this message.
    Permanent { why: String },
}

impl Outcome {
    /// Trouble that may pass.
    pub fn temporary(why: impl Into<String>) -> Outcome {
        Outcome::Temporary { why: why.into(), after_ms: None }
    }
}

/// What is known about a message when a try is over.
#[derive(Debug, Clone, Copy)]
pub struct Tried<'a> {
    /// The message's id: it makes the jitter.
    pub id: &'a [u8],
    /// Tries so far, this one included.
    pub tries: u32,
    /// When the first try was due.
    pub begun_at: Timestamp,
    pub now: Timestamp,
}

/// What is written down after a try, or instead of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    Sent,
    /// Tried again at this time.
    Retrying {
        next_at: Timestamp,
        error: String,
    },
    GivenUp {
        error: String,
    },
    /// Not tried: the person is left alone until then.
    Held {
        until: Timestamp,
    },
}

impl Settled {
    /// Where the message stands then.
    pub fn state(&self) -> State {
        match self {
            Settled::Sent => State::Sent,
            Settled::Retrying { .. } => State::Retrying,
            Settled::GivenUp { .. } => State::GivenUp,
            Settled::Held { .. } => State::Pending,
        }
    }

    /// What metrics call it.
    pub fn outcome(&self) -> &'static str {
        match self {
            Settled::Held { .. } => "held",
            Settled::Sent | Settled::Retrying { .. } | Settled::GivenUp { .. } => self.state().name(),
        }
    }
}

/// What follows a try.
pub fn settle(outcome: &Outcome, tried: &Tried<'_>) -> Settled {
    match outcome {
        Outcome::Taken => Settled::Sent,
        Outcome::Permanent { why } => Settled::GivenUp { error: clean::line(why, ERROR_CHARS_MAX) },
        Outcome::Temporary { why, after_ms } => {
            let error = clean::line(why, ERROR_CHARS_MAX);
            match next_try(tried, *after_ms) {
                Some(next_at) => Settled::Retrying { next_at, error },
                None => Settled::GivenUp { error },
            }
        }
    }
}

/// When a message is tried again; none when it was tried for a day. The last try is at the end of the day,
/// so that a receiver that is back within it gets every message.
pub fn next_try(tried: &Tried<'_>, asked_ms: Option<Millis>) -> Option<Timestamp> {
    let last_at = tried.begun_at.plus_ms(TRIED_FOR_MS);
    if tried.now >= last_at {
        return None;
    }
    let delay_ms = POLICY.delay_ms(tried.tries, backoff_seed(&[tried.id]));
    let asked_ms = asked_ms.unwrap_or(0).clamp(0, PATIENCE_MAX_MS);
    Some(tried.now.plus_ms(delay_ms.max(asked_ms)).min(last_at))
}

/// When a message may be tried for the first time: now, or at the end of the person's quiet hours.
pub fn first_try(contact: &Contact, severity: Option<Severity>, created_at: Timestamp) -> Timestamp {
    contact.held_until(severity, created_at).unwrap_or(created_at)
}

#[cfg(test)]
mod tests;
