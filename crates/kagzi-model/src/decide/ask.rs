//! Ask: the code asks a person and waits for the answer, or asks again whether it has come.

use super::{await_signal::told_before, lease_guard, park};
use crate::{
    Aggregate, Change, EventKind, Lease, Name, Rejection, Rule, StepRef, StepState, Timestamp, Wait, Waited,
    intervention::{self, person_channel, question_id},
    limits::{QUESTIONS_OPEN_MAX, WAITS_OPEN_MAX},
};

/// Opens a question together with the wait for its answer; both are there, or neither. The worker sends it
/// whenever the code comes by, so a question that was dropped meanwhile is asked anew.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    pub step: StepRef,
    pub ask: Box<intervention::Ask>,
    /// The lease ends if nobody has answered.
    pub park: bool,
}

impl Rule for Ask {
    type Sender = Lease;
    type Reply = Waited;

    /// The answer was lost; the lease may have ended with it.
    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Waited> {
        let known = seen.steps.get(&self.step.path).filter(|known| known.position == self.step.position)?;
        match &known.state {
            StepState::Done(end) => told_before(seen, &self.step, end).ok(),
            StepState::Waiting(Wait::Person { .. }) if seen.run.lease().is_none() => {
                Some(Waited::Until(None))
            }
            StepState::Waiting(_) | StepState::Running { .. } => None,
        }
    }

    fn decide(&self, now: Timestamp, seen: &Aggregate, _: &Lease) -> Result<Change<Waited>, Rejection> {
        let Ask { step, ask, park } = self;
        let (path, position, mail) = (step.path.clone(), step.position, seen.mail.as_deref());
        let channel = person_channel(&path);
        let known = lease_guard::known_or_new_step(seen, step)?;
        let is_open = match known.map(|known| &known.state) {
            Some(StepState::Done(end)) => return told_before(seen, step, end).map(Change::nothing),
            Some(StepState::Waiting(Wait::Person { .. })) => {
                mail.is_some_and(|mail| mail.questions().contains_key(&path))
            }
            // Its failure was forgiven: it is asked anew.
            Some(StepState::Waiting(Wait::Retry { .. }))
                if mail.is_some_and(|mail| mail.taken(&path).is_some()) =>
            {
                false
            }
            Some(StepState::Running { .. } | StepState::Waiting(_)) => {
                return Err(Rejection::StepDecided { step: path });
            }
            None => false,
        };
        if let Some(signal) = mail.and_then(|mail| mail.next(&channel)) {
            let (received, id, failure) = (Some(signal.seq), signal.id.clone(), signal.failure.clone());
            let reply = Waited::Taken { seq: signal.seq, id: id.clone(), failure: failure.clone() };
            let event = EventKind::WaitEnded {
                step: path,
                position,
                channel,
                id,
                received,
                failure,
                published: None,
            };
            let change = Change::event(event, None, reply);
            return Ok(Change { run: lease_guard::progressed(seen), ..change });
        }
        let mut change = Change::nothing(Waited::Until(None));
        if !is_open {
            let open = mail.map_or(0, |mail| mail.questions().len());
            if open >= QUESTIONS_OPEN_MAX {
                return Err(Rejection::TooManyWaits { run: seen.run.id, max: QUESTIONS_OPEN_MAX });
            }
            if seen.open_len() >= WAITS_OPEN_MAX {
                return Err(Rejection::TooManyWaits { run: seen.run.id, max: WAITS_OPEN_MAX });
            }
            let question = question_id(seen.run.id, now, seen.last_seq + 1);
            let began = EventKind::WaitBegan { step: path.clone(), position, channel, until: None };
            let asked = EventKind::QuestionAsked {
                step: path,
                question: Name::from(question.to_string()),
                type_name: Name::from(ask.kind.name()),
                title: Name::from(ask.title.as_str()),
            };
            change.events = vec![(began, None), (asked, None)];
            change.run = lease_guard::progressed(seen);
        }
        Ok(if *park { park::after_events(now, seen, change) } else { change })
    }
}
