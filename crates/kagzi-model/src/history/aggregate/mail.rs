//! What others told the run, beside the waits of its steps.

use std::collections::BTreeSet;

use super::Aggregate;
use crate::{
    Mail, Name, Step, StepState, Timestamp,
    intervention::{is_person_channel, question_id},
    is_event_channel,
};

impl Aggregate {
    /// The oldest open wait on this channel that the code has not dropped.
    pub fn waits_on(&self, channel: &Name) -> Option<&Step> {
        let waits = |step: &&Step| {
            matches!(&step.state, StepState::Waiting(wait) if wait.channel() == Some(channel)) && !step.closed
        };
        self.mail.as_deref()?.waiting(channel).filter_map(|path| self.steps.get(path)).find(waits)
    }

    /// A signal that this step waits for is there and was not taken.
    pub fn is_signalled(&self, step: &Step) -> bool {
        match (&step.state, self.mail.as_deref()) {
            (StepState::Waiting(wait), Some(mail)) => {
                wait.channel().is_some_and(|channel| mail.next(channel).is_some())
            }
            (StepState::Waiting(_) | StepState::Running { .. } | StepState::Done(_), _) => false,
        }
    }

    /// The channels of topics on which the run waits for events now.
    pub fn listens(&self) -> BTreeSet<Name> {
        if self.run.state.finished() || !self.has_waited_for_events() {
            return BTreeSet::new();
        }
        let waits = self.open_steps().filter_map(|step| match &step.state {
            StepState::Waiting(wait) => wait.channel(),
            StepState::Running { .. } | StepState::Done(_) => None,
        });
        waits.filter(|channel| is_event_channel(channel)).cloned().collect()
    }

    /// The code has waited for events in this generation. Most runs never do.
    #[inline]
    pub fn has_waited_for_events(&self) -> bool {
        self.mail.as_deref().is_some_and(Mail::has_waited_for_events)
    }

    /// Up to which event of this channel's topic the run has heard: at first up to its own beginning. What is
    /// published in the very instant of its beginning is not before it.
    pub fn heard_until(&self, channel: &Name) -> Timestamp {
        let beginning = Timestamp(self.run.created_at.0.saturating_sub(1));
        let heard = self.mail.as_deref().and_then(|mail| mail.heard_until(channel));
        heard.map_or(beginning, |heard| heard.max(beginning))
    }

    pub(super) fn hear_event(&mut self, channel: &Name, published: Option<Timestamp>) {
        if let Some(published) = published {
            self.mail_mut().hear(channel, published);
        }
    }

    /// A wait for a person began: its question is open from here on. Its id follows from its place in the
    /// history.
    pub(super) fn note_question(&mut self, at: Timestamp, channel: &Name, step: &Name) {
        if is_person_channel(channel) {
            let id = question_id(self.run.id, at, self.last_seq);
            self.mail_mut().questions.insert(step.clone(), id);
        }
    }

    /// The run has ended: nobody wants an answer any more.
    #[inline(always)]
    pub(super) fn forget_questions(&mut self) {
        if let Some(mail) = &mut self.mail {
            mail.questions.clear();
        }
    }

    pub(super) fn mail_mut(&mut self) -> &mut Mail {
        self.mail.get_or_insert_default()
    }

    /// The channel on which the step waits, if it does.
    pub(super) fn channel_of(&self, path: &Name) -> Option<Name> {
        match &self.steps.get(path)?.state {
            StepState::Waiting(wait) => wait.channel().cloned(),
            StepState::Running { .. } | StepState::Done(_) => None,
        }
    }
}
