//! Continue: the function ended, and the run begins anew with another input.

use super::{complete, ending, record_step};
use crate::{
    Aggregate, Change, Done, Ends, EventKind, Failure, Lease, Name, Payload, Rejection, Rule, Run, State,
    StepResult, Timestamp, command::result_bytes, limits::IDLE_PARKS_MAX,
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
        // The floor under a function that does nothing but continue, the same as under one that parks for
        // nothing.
        let is_idle = seen.steps.is_empty() && steps.is_empty();
        let idle = if is_idle { seen.idle_parks.saturating_add(1) } else { 0 };
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
            idle,
        };
        events.push((continued, Some(input.clone())));
        let ready = (State::Ready { since: now }, None);
        let (state, paused) = if is_idle { put_off(now, seen, idle) } else { ready };
        let run = Run {
            state,
            generation,
            first_seq: seen.last_seq + events.len() as u64,
            attempts: 0,
            crashes: 0,
            ..run.clone()
        };
        let mut change = Change { run: Some(run), events, reply: Done::NOW, follow: vec![] };
        if let Some(paused) = paused {
            change.events.push((paused, None));
            ending::with_handler(seen, &mut change);
        }
        Ok(change)
    }

    fn payload_bytes(&self) -> usize {
        self.input.data.len() + result_bytes(&self.steps)
    }

    fn ends(&self) -> Ends<'_> {
        Ends::Lease
    }
}

/// A run that has continued for nothing is due at once for the first times, then later and later, and is
/// paused in the end.
fn put_off(now: Timestamp, seen: &Aggregate, idle: u32) -> (State, Option<EventKind>) {
    if idle >= IDLE_PARKS_MAX {
        let why = format!(
            "it continued in place {IDLE_PARKS_MAX} times in a row without anything recorded in between; \
             look at what its function does before it continues, then: kagzi run resume {}",
            seen.run.id
        );
        let by = Name::from("spin");
        let state = State::Paused { by: by.clone(), why: why.clone(), since: now };
        return (state, Some(EventKind::RunPaused { by, why }));
    }
    let state = match seen.idle_delay_ms() {
        0 => State::Ready { since: now },
        delay_ms => {
            let failure = Failure::new("SPIN", "it continued in place and had done nothing else");
            State::retry(None, idle, now.plus_ms(delay_ms), failure)
        }
    };
    (state, None)
}
