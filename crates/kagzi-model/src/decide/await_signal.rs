//! AwaitSignal: the code waits for a signal, or asks again whether one has come.

use super::{lease_guard, park};
use crate::{
    Aggregate, Change, EventKind, Lease, Millis, Name, Rejection, Rule, StepEnd, StepRef, StepState,
    Timestamp, Wait, Waited, is_child_channel,
    limits::{WAIT_MS_MAX, WAITS_OPEN_MAX},
};

/// Opens a wait on a channel, or asks again about one that is open: both are the same question. The worker
/// asks when the function can be told of the answer, so the answer's place in the record is its place in what
/// the function was told.
#[derive(Debug, Clone, PartialEq)]
pub struct AwaitSignal {
    pub step: StepRef,
    pub channel: Name,
    /// Counts from the first question. None: it waits for as long as it takes.
    pub timeout_ms: Option<Millis>,
    /// If nothing is there, nothing more is taken on this channel: whoever sends later is refused.
    pub last_call: bool,
    /// The lease ends if nothing has come.
    pub park: bool,
}

impl Rule for AwaitSignal {
    type Sender = Lease;
    type Reply = Waited;

    /// The answer was lost; the lease may have ended with it.
    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Waited> {
        let known = seen.steps.get(&self.step.path).filter(|known| known.position == self.step.position)?;
        match &known.state {
            StepState::Done(end) => told_before(seen, &self.step, end).ok(),
            StepState::Waiting(wait) if wait.channel().is_some() && seen.run.lease().is_none() => {
                Some(Waited::Until(wait.due_at()))
            }
            StepState::Waiting(_) | StepState::Running { .. } => None,
        }
    }

    /// Takes the oldest signal that is there. Else the wait is over when its time has come, and goes on when
    /// it has not.
    fn decide(&self, now: Timestamp, seen: &Aggregate, _: &Lease) -> Result<Change<Waited>, Rejection> {
        let AwaitSignal { step, channel, timeout_ms, last_call, park } = self;
        let (path, position, mail) = (step.path.clone(), step.position, seen.mail.as_deref());
        let known = lease_guard::known_or_new_step(seen, step)?;
        // The code had dropped it, and comes by again.
        let dropped = known.is_some_and(|known| known.closed);
        let until = match known.map(|known| &known.state) {
            Some(StepState::Done(end)) => return told_before(seen, step, end).map(Change::nothing),
            Some(StepState::Waiting(wait)) if wait.channel() == Some(channel) => Some(wait.due_at()),
            // A child ends once, and a promise fails once, so whoever asks for it again is told the same.
            Some(StepState::Waiting(Wait::Retry { failure, .. }))
                if is_told_once(seen, channel) && mail.is_some_and(|mail| mail.taken(&path).is_some()) =>
            {
                let seq = mail.and_then(|mail| mail.taken(&path)).map_or(0, |taken| taken.seq);
                let (id, failure) = (Name::from("again"), Some(failure.clone()));
                let reply = Waited::Taken { seq, id: id.clone(), failure: failure.clone() };
                let (received, channel) = (Some(seq), channel.clone());
                let (step, published) = (path, None);
                let event =
                    EventKind::WaitEnded { step, position, channel, id, received, failure, published };
                return Ok(Change::event(event, None, reply));
            }
            // Its failure was forgiven: the code waits anew.
            Some(StepState::Waiting(Wait::Retry { .. }))
                if mail.is_some_and(|mail| mail.taken(&path).is_some()) =>
            {
                None
            }
            Some(StepState::Running { .. } | StepState::Waiting(_)) => {
                return Err(Rejection::StepDecided { step: path });
            }
            None => None,
        };
        if let Some(signal) = mail.and_then(|mail| mail.next(channel)) {
            let (received, id, failure) = (Some(signal.seq), signal.id.clone(), signal.failure.clone());
            let reply = Waited::Taken { seq: signal.seq, id: id.clone(), failure: failure.clone() };
            let channel = channel.clone();
            let (step, published) = (path, None);
            let event = EventKind::WaitEnded { step, position, channel, id, received, failure, published };
            let change = Change::event(event, None, reply);
            return Ok(Change { run: lease_guard::progressed(seen), ..change });
        }
        if *last_call || mail.is_some_and(|mail| mail.is_closed(channel)) {
            let event = EventKind::ChannelClosed { step: path, position, channel: channel.clone() };
            return Ok(Change::event(event, None, Waited::Closed));
        }
        let mut change = Change::nothing(Waited::Until(None));
        let is_new = until.is_none();
        // A promise's time counts from when it was made.
        let promise = mail.and_then(|mail| mail.promise_on(channel));
        let until = until.unwrap_or_else(|| match promise {
            Some(promise) => promise.due_at(),
            None => timeout_ms.map(|ms| now.plus_ms(ms.clamp(0, WAIT_MS_MAX))),
        });
        if is_new || dropped {
            let (step, channel) = (path.clone(), channel.clone());
            change.events.push((EventKind::WaitBegan { step, position, channel, until }, None));
            change.run = lease_guard::progressed(seen);
        }
        if !change.events.is_empty() && seen.open_len() >= WAITS_OPEN_MAX {
            return Err(Rejection::TooManyWaits { run: seen.run.id, max: WAITS_OPEN_MAX });
        }
        if until.is_some_and(|until| until <= now) {
            change.events.push((EventKind::SleepOver { step: path }, None));
            let silent = promise.is_some_and(|promise| promise.is_silent_at(now));
            return Ok(change.replying(if silent { Waited::Silent } else { Waited::Elapsed }));
        }
        let change = change.replying(Waited::Until(until));
        Ok(if *park { park::after_events(now, seen, change) } else { change })
    }
}

/// Nothing more comes on this channel once something has come.
fn is_told_once(seen: &Aggregate, channel: &Name) -> bool {
    is_child_channel(channel) || seen.mail.as_deref().is_some_and(|mail| mail.promise_on(channel).is_some())
}

/// What a wait that is over came to.
pub fn told_before(seen: &Aggregate, step: &StepRef, end: &StepEnd) -> Result<Waited, Rejection> {
    let mail = seen.mail.as_deref();
    let taken = mail.and_then(|mail| mail.taken(&step.path));
    let closed = mail.is_some_and(|mail| mail.was_last_call(&step.path));
    match (end, taken) {
        (StepEnd::Elapsed, _) => {
            let promise = mail.and_then(|mail| mail.promise_on(mail.channel_of(&step.path)?));
            let silent = promise.is_some_and(|promise| promise.silent);
            Ok(if silent { Waited::Silent } else { Waited::Elapsed })
        }
        (StepEnd::Recorded, Some(taken)) => {
            Ok(Waited::Taken { seq: taken.seq, id: taken.id.clone(), failure: None })
        }
        (StepEnd::Failed { failure, .. }, Some(taken)) => {
            let failure = Some(failure.clone());
            Ok(Waited::Taken { seq: taken.seq, id: taken.id.clone(), failure })
        }
        (StepEnd::Recorded, None) if closed => Ok(Waited::Closed),
        (StepEnd::Labelled, _) | (StepEnd::Recorded | StepEnd::Failed { .. }, None) => {
            Err(Rejection::StepDecided { step: step.path.clone() })
        }
    }
}
