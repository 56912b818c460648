//! MakePromise: the code makes something that somebody outside completes. Recorded like a step.

use super::lease_guard;
use crate::{
    Aggregate, Change, Done, EventKind, Lease, Millis, Name, Payload, Rejection, Rule, StepRef, Timestamp,
    decide::record_step, limits::WAIT_MS_MAX,
};

/// Makes a promise; the call has a step's identity.
#[derive(Debug, Clone, PartialEq)]
pub struct MakePromise {
    pub step: StepRef,
    pub name: Name,
    pub token_hash: Name,
    /// The secret of the token, as the worker's codecs made it: a replay hands the same token out.
    pub secret: Payload,
    /// Counts from now, whenever the code waits for it.
    pub timeout_ms: Option<Millis>,
    pub heartbeat_ms: Option<Millis>,
}

impl Rule for MakePromise {
    type Sender = Lease;
    type Reply = Done;

    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Done> {
        record_step::is_recorded(seen, &self.step).then_some(Done::BEFORE)
    }

    fn decide(&self, now: Timestamp, seen: &Aggregate, _: &Lease) -> Result<Change<Done>, Rejection> {
        let MakePromise { step, name, token_hash, secret, timeout_ms, heartbeat_ms } = self;
        if lease_guard::known_or_new_step(seen, step)?.is_some() {
            return Err(Rejection::StepDecided { step: step.path.clone() });
        }
        let known = seen.mail.as_deref().and_then(|mail| mail.promise(name));
        if known.is_some_and(|known| known.step != step.path) {
            return Err(Rejection::PromiseExists { run: seen.run.id, name: name.clone() });
        }
        let event = EventKind::PromiseMade {
            step: step.path.clone(),
            position: step.position,
            name: name.clone(),
            token_hash: token_hash.clone(),
            until: timeout_ms.map(|ms| now.plus_ms(ms.clamp(0, WAIT_MS_MAX))),
            heartbeat_ms: heartbeat_ms.map(|ms| ms.clamp(1, WAIT_MS_MAX).unsigned_abs()),
        };
        let change = Change::event(event, Some(secret.clone()), Done::NOW);
        Ok(Change { run: lease_guard::progressed(seen), ..change })
    }

    fn payload_bytes(&self) -> usize {
        self.secret.data.len()
    }
}
