//! TellAnswer: a run is told what a person answered, in the commit that closes the question.

use uuid::Uuid;

use super::{
    history_bound,
    signal::{Told, deliver},
};
use crate::{
    Aggregate, Change, Done, EventKind, Failure, Mail, Name, Payload, Rejection, Rule, Timestamp, codes,
    intervention::{Tell, person_channel},
};

/// Tells the run the answer to the question of this step. Like a signal, on a channel that only the step has.
#[derive(Debug, Clone, PartialEq)]
pub struct TellAnswer {
    pub step: Name,
    pub question: Uuid,
    pub tell: Tell,
    /// Nobody, when its time was over.
    pub by: Option<Name>,
    pub source: Name,
    /// In a word or two.
    pub answer: Name,
}

impl Rule for TellAnswer {
    type Sender = ();
    type Reply = Done;

    /// It was told before, or nobody waits for it any more.
    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Done> {
        let (channel, id) = (person_channel(&self.step), Name::from(self.question.to_string()));
        let is_wanted = |mail: &Mail| {
            mail.questions().get(&self.step) == Some(&self.question) && !mail.was_told(&channel, &id)
        };
        (!seen.mail.as_deref().is_some_and(is_wanted)).then_some(Done::BEFORE)
    }

    fn decide(&self, now: Timestamp, seen: &Aggregate, (): &()) -> Result<Change<Done>, Rejection> {
        let TellAnswer { step, question, tell, by, source, answer } = self;
        let run = &seen.run;
        if run.state.finished() {
            return Err(Rejection::Ended { run: run.id, status: run.state.status() });
        }
        let Tell { mut payload, mut failure } = tell.clone();
        if !history_bound::fits(seen, payload.data.len()) {
            let why = format!("the history of run {} has no room for the answer", run.id);
            (payload, failure) =
                (Payload::new(&b""[..]), Some(Failure::new(codes::HISTORY_TOO_LARGE, &why).non_retryable()));
        }
        let (channel, id) = (person_channel(step), Name::from(question.to_string()));
        let told = Told { channel: &channel, id: &id, payload: Some(payload), failure, published: None };
        let mut change = deliver(now, seen, told).replying(Done::NOW);
        let answered = EventKind::QuestionAnswered {
            step: step.clone(),
            question: id.clone(),
            by: by.clone(),
            source: source.clone(),
            answer: answer.clone(),
        };
        change.events.push((answered, None));
        Ok(change)
    }

    fn payload_bytes(&self) -> usize {
        self.tell.payload.data.len()
    }
}
