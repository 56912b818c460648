//! CompletePromise: somebody outside completes a promise or says that it has failed. The first word counts.

use crate::{
    Aggregate, Author, Change, Failure, Name, Payload, Promise, Rejection, Rule, Signalled, Timestamp, act,
    promise_channel,
};

/// Completes the promise of this name, once.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletePromise {
    pub name: Name,
    /// Of the secret that the caller showed; none when he has the right to tell this run anything.
    pub token_hash: Option<Name>,
    pub payload: Payload,
    /// It has failed: the wait for it ends with this error.
    pub failure: Option<Failure>,
}

impl CompletePromise {
    fn signal(&self) -> act::Signal {
        let (payload, failure) = (self.payload.clone(), self.failure.clone());
        act::Signal { channel: promise_channel(&self.name), id: self.name.clone(), payload, failure }
    }
}

/// The promise, if the caller may know of it: who shows a wrong token hears the same as who names a promise
/// that is not there.
pub fn known<'a>(
    seen: &'a Aggregate,
    name: &Name,
    token_hash: Option<&Name>,
) -> Result<&'a Promise, Rejection> {
    let promise = seen.mail.as_deref().and_then(|mail| mail.promise(name));
    promise
        .filter(|promise| token_hash.is_none_or(|shown| *shown == promise.token_hash))
        .ok_or_else(|| Rejection::PromiseUnknown { run: seen.run.id, name: name.clone() })
}

impl Rule for CompletePromise {
    type Sender = Author;
    type Reply = Signalled;

    fn repeat(&self, now: Timestamp, seen: &Aggregate) -> Option<Signalled> {
        known(seen, &self.name, self.token_hash.as_ref()).ok()?;
        self.signal().repeat(now, seen)
    }

    fn decide(&self, now: Timestamp, seen: &Aggregate, by: &Author) -> Result<Change<Signalled>, Rejection> {
        known(seen, &self.name, self.token_hash.as_ref())?;
        self.signal().decide(now, seen, by)
    }

    fn payload_bytes(&self) -> usize {
        self.payload.data.len()
    }
}
