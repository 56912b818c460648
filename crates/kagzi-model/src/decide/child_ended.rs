//! ChildEnded: a run is told that its child has ended, in the commit that ended it.

use super::{
    history_bound,
    signal::{Told, deliver},
};
use crate::{
    Aggregate, Change, Command, Done, Failure, Family, Name, Payload, Rejection, Rule, Run, RunId, RunKey,
    State, Timestamp, child_channel, codes,
};

/// Tells the parent how its child ended. Like a signal, on a channel that only this child has; a parent that
/// has ended is told too, because a person may let it go on.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildEnded {
    pub child: RunId,
    /// Counts once: a child that a person let go on ends again.
    pub id: Name,
    pub output: Option<Payload>,
    pub failure: Option<Failure>,
}

impl Rule for ChildEnded {
    type Sender = ();
    type Reply = Done;

    /// It was told before, or the child was closed because the run had ended: nobody waits for it.
    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Done> {
        let living = |family: &Family| family.is_living(self.child);
        (!seen.family.as_deref().is_some_and(living)).then_some(Done::BEFORE)
    }

    fn decide(&self, now: Timestamp, seen: &Aggregate, (): &()) -> Result<Change<Done>, Rejection> {
        let (mut payload, mut failure) = (self.output.clone(), self.failure.clone());
        let len = payload.as_ref().map_or(0, |payload| payload.data.len());
        if !history_bound::fits(seen, len) {
            let why = format!(
                "child run {} completed, and the history of run {} has no room for its output",
                self.child, seen.run.id
            );
            (payload, failure) = (None, Some(Failure::new(codes::HISTORY_TOO_LARGE, &why).non_retryable()));
        }
        let channel = child_channel(self.child);
        let payload = Some(payload.unwrap_or_else(|| Payload::new(&b""[..])));
        let told = Told { channel: &channel, id: &self.id, payload, failure, published: None };
        Ok(deliver(now, seen, told).replying(Done::NOW))
    }

    fn payload_bytes(&self) -> usize {
        self.output.as_ref().map_or(0, |output| output.data.len())
    }
}

/// What the parent of a run that ends is told, if it wants to hear of it.
pub fn tell_parent(seen: &Aggregate, ended: &Run, output: Option<&Payload>) -> Option<Command> {
    let parent = ended.options.parent.as_ref().filter(|parent| parent.told)?;
    let failure = failure_of(ended);
    // Where in its history it ended: a child that goes on and ends again ends elsewhere.
    let id = Name::from(format!("end:{}", seen.last_seq));
    let told = ChildEnded { child: ended.id, id, output: output.cloned(), failure };
    Some(RunKey::new(ended.namespace.clone(), parent.run).duty(told))
}

/// The parent of a child that could not be started is told so.
pub fn tell_not_started(parent: RunKey, child: RunId, why: &str) -> Command {
    let failure = Failure::new(codes::CHILD_NOT_STARTED, why).non_retryable();
    parent.duty(ChildEnded { child, id: Name::from("start"), output: None, failure: Some(failure) })
}

/// The child's own code, and words that say which run it was.
fn failure_of(ended: &Run) -> Option<Failure> {
    let (id, workflow_type) = (ended.id, &ended.workflow_type);
    let status = ended.state.status().name();
    match &ended.state {
        State::Failed { failure } | State::TimedOut { failure } => {
            let message = format!("child run {id} ({workflow_type}) ended as {status}: {}", failure.message);
            Some(Failure { message: Failure::new("", &message).message, ..failure.clone() })
        }
        State::Cancelled { reason } => {
            let message = format!("child run {id} ({workflow_type}) was cancelled: {reason}");
            Some(Failure::new(codes::CANCELLED, &message).non_retryable())
        }
        State::Completed => None,
        State::Ready { .. } | State::Leased(_) | State::Waiting(_) | State::Paused { .. } => None,
    }
}
