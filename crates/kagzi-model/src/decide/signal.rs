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

    /// What a worker's function was told last is known to its worker only, so a leased run only finds it
    /// where its worker asks.
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
        let (payload, failure) = (Some(payload.clone()), failure.clone());
        let told = Told { channel, id, payload, failure, published: None };
        Ok(deliver(now, seen, told).replying(Signalled { already: false }))
    }

    fn payload_bytes(&self) -> usize {
        self.payload.data.len()
    }
}

/// Something that is told to a run.
pub struct Told<'a> {
    pub channel: &'a Name,
    pub id: &'a Name,
    pub payload: Option<Payload>,
    pub failure: Option<Failure>,
    /// Of a published event: its place on its topic.
    pub published: Option<Timestamp>,
}

/// A parked run whose wait is open goes on with it, or with the last of its waits if it asked for that.
/// Everybody else finds it when a wait opens or asks again.
pub fn deliver(now: Timestamp, seen: &Aggregate, told: Told<'_>) -> Change<()> {
    let Told { channel, id, payload, failure, published } = told;
    let run = &seen.run;
    let parked = run.state.parked().filter(|parked| parked.step.is_some());
    let (Some(parked), Some(step)) = (parked, seen.waits_on(channel)) else {
        let (channel, id) = (channel.clone(), id.clone());
        return Change::event(EventKind::SignalReceived { channel, id, failure, published }, payload, ());
    };
    debug_assert!(matches!(step.state, StepState::Waiting(_)));
    let wakes = parked.wake.is_reached(failure.is_some(), seen.open_len().saturating_sub(1));
    let ended = EventKind::WaitEnded {
        step: step.path.clone(),
        position: step.position,
        channel: channel.clone(),
        id: id.clone(),
        received: None,
        failure,
        published,
    };
    let change = Change::event(ended, payload, ());
    let ready = || Run { state: State::Ready { since: now }, ..run.clone() };
    Change { run: wakes.then(ready), ..change }
}
