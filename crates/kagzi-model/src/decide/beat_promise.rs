//! BeatPromise: whoever works on a promise says that he lives.

use super::{complete_promise, park};
use crate::{
    Aggregate, Author, Change, Done, EventKind, Name, Promise, Rejection, Rule, Timestamp,
    limits::PROGRESS_EVENTS_MAX, promise_channel,
};

/// A sign of life for the promise of this name.
#[derive(Debug, Clone, PartialEq)]
pub struct BeatPromise {
    pub name: Name,
    /// Of the secret that the caller showed, as in [`CompletePromise`](crate::act::CompletePromise).
    pub token_hash: Option<Name>,
}

impl Rule for BeatPromise {
    type Sender = Author;
    type Reply = Done;

    /// Writes nothing as long as the last sign lasts longer than what was asked for, so a history has at most
    /// two signs in one and a half times of it.
    fn decide(&self, now: Timestamp, seen: &Aggregate, _: &Author) -> Result<Change<Done>, Rejection> {
        let BeatPromise { name, token_hash } = self;
        let promise = complete_promise::known(seen, name, token_hash.as_ref())?;
        let run = &seen.run;
        if run.state.finished() {
            return Err(Rejection::Ended { run: run.id, status: run.state.status() });
        }
        let told = |mail: &crate::Mail| mail.was_told(&promise_channel(name), name);
        let over = promise.silent || seen.mail.as_deref().is_some_and(told);
        let Some(heartbeat_ms) = promise.heartbeat_ms.filter(|_| !over) else {
            return Ok(Change::nothing(Done::BEFORE));
        };
        let lasts = promise.alive_until.is_some_and(|until| until >= now.plus_ms(heartbeat_ms));
        if lasts || seen.last_seq >= PROGRESS_EVENTS_MAX {
            return Ok(Change::nothing(Done::BEFORE));
        }
        let until = Promise::lasts_until(heartbeat_ms, now);
        let change = Change::event(EventKind::PromiseBeat { name: name.clone(), until }, None, Done::NOW);
        Ok(park::due_anew(now, seen, change))
    }
}
