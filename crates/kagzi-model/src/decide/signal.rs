//! Signal: somebody tells a run something, once per channel and id.

use super::history_bound;
use crate::{
    Aggregate, Author, Change, EventKind, Failure, Name, Payload, Rejection, Rule, Run, Signalled, State,
    StepState, Timestamp, limits::UNREAD_MAX,
};

/// Tells the run something. The same id on the same channel counts once, whatever it says.
#[derive(Debug, Clone, PartialEq)]
pub struct Signal {
    pub channel: Name,
    pub id: Name,
    pub payload: Payload,
    /// What is waited for has failed: the wait ends with this error.
    pub failure: Option<Failure>,
}

impl Rule for Signal {
    type Sender = Author;
    type Reply = Signalled;

    /// It came before, perhaps by way of another server; taken or not, it is not told again.
    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Signalled> {
        let told = |mail: &crate::Mail| mail.was_told(&self.channel, &self.id);
        seen.mail.as_deref().is_some_and(told).then_some(Signalled { already: true })
    }

    /// A parked run whose wait is open goes on with it. Everybody else finds it when a wait opens or asks
    /// again: what a worker's function was told last is known to its worker only, so the worker asks.
    fn decide(&self, now: Timestamp, seen: &Aggregate, _: &Author) -> Result<Change<Signalled>, Rejection> {
        let Signal { channel, id, payload, failure } = self;
        let run = &seen.run;
        if run.state.finished() {
            return Err(Rejection::Ended { run: run.id, status: run.state.status() });
        }
        if let Some(mail) = seen.mail.as_deref() {
            if mail.is_closed(channel) {
                return Err(Rejection::ChannelClosed { run: run.id, channel: channel.clone() });
            }
            if mail.unread_len() >= UNREAD_MAX {
                return Err(Rejection::TooManySignals { run: run.id, max: UNREAD_MAX });
            }
        }
        history_bound::check(seen, payload.data.len())?;
        let (payload, reply) = (Some(payload.clone()), Signalled { already: false });
        let parked_in_steps = run.state.parked().is_some_and(|parked| parked.step.is_some());
        let Some(step) = seen.waits_on(channel).filter(|_| parked_in_steps) else {
            let (channel, id, failure) = (channel.clone(), id.clone(), failure.clone());
            let event = EventKind::SignalReceived { channel, id, failure };
            return Ok(Change::event(event, payload, reply));
        };
        debug_assert!(matches!(step.state, StepState::Waiting(_)));
        let ended = EventKind::WaitEnded {
            step: step.path.clone(),
            position: step.position,
            channel: channel.clone(),
            id: id.clone(),
            received: None,
            failure: failure.clone(),
        };
        let change = Change::event(ended, payload, reply);
        let ready = Run { state: State::Ready { since: now }, ..run.clone() };
        Ok(Change { run: Some(ready), ..change })
    }

    fn payload_bytes(&self) -> usize {
        self.payload.data.len()
    }
}
