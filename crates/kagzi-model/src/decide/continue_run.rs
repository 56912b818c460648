//! Continue: the function ended, and the run begins anew with another input.

use super::{complete, record_step};
use crate::{
    Aggregate, Change, Done, Ends, EventKind, Lease, Payload, Rejection, Rule, Run, State, StepResult,
    Timestamp, command::result_bytes,
};

/// Ends the living generation of the run and begins the next one: the same run with an empty record. What
/// others told the run and nobody has read stays, and so does everything that its row says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Continue {
    /// Results that were not recorded before.
    pub steps: Vec<StepResult>,
    /// What the function is given next.
    pub input: Payload,
}

impl Rule for Continue {
    type Sender = Lease;
    type Reply = Done;

    /// The answer was lost, and nobody was given the run since.
    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Done> {
        (seen.continued_under > 0 && seen.continued_under == seen.run.epoch).then_some(Done::BEFORE)
    }

    /// The lease ends and the run is ready. Steps, sleeps and waits are forgotten, also those that have not
    /// ended: they belong to code that has. Failed executions are not counted any longer.
    fn decide(&self, now: Timestamp, seen: &Aggregate, _: &Lease) -> Result<Change<Done>, Rejection> {
        let Continue { steps, input } = self;
        complete::fit(seen, steps)?;
        let run = &seen.run;
        let mut events = Vec::with_capacity(steps.len() + 1);
        for last in steps {
            events.extend(record_step::unless_recorded(seen, last)?);
        }
        let carried = seen.mail.as_deref().map(crate::Mail::carried).unwrap_or_default();
        let generation = run.generation.saturating_add(1);
        let continued = EventKind::RunContinued {
            generation,
            epoch: run.epoch,
            taken: carried.taken,
            unread: carried.unread,
            closed: carried.closed,
            requests: seen.requests.clone(),
            handlers: seen.handlers.clone(),
            children: seen.family.as_deref().map(crate::Family::carried).unwrap_or_default(),
            heard: carried.heard,
            heard_others: carried.heard_others,
        };
        events.push((continued, Some(input.clone())));
        let run = Run {
            state: State::Ready { since: now },
            generation,
            first_seq: seen.last_seq + events.len() as u64,
            attempts: 0,
            crashes: 0,
            ..run.clone()
        };
        Ok(Change { run: Some(run), events, reply: Done::NOW, follow: vec![] })
    }

    fn payload_bytes(&self) -> usize {
        self.input.data.len() + result_bytes(&self.steps)
    }

    fn ends(&self) -> Ends<'_> {
        Ends::Lease
    }
}
