//! Park: nothing can go on before the earliest retry or sleep, so the lease ends and the slot is free.

use std::collections::HashSet;

use super::{ending, lease_guard};
use crate::{
    Aggregate, Change, Done, Ends, EventKind, Failure, Lease, Name, Rejection, Rule, Run, State, Step,
    StepState, Timestamp, Wait, limits::IDLE_PARKS_MAX,
};

/// Ends the lease until the earliest of the retries and sleeps in `waits` is due; unfinished steps that are
/// not among them are closed. Empty: until the earliest of all, from workers that cannot say what they wait
/// for.
#[derive(Debug, Clone, PartialEq)]
pub struct Park {
    pub waits: Vec<Name>,
}

impl Rule for Park {
    type Sender = Lease;
    type Reply = Done;

    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Done> {
        lease_guard::given_up(seen).then_some(Done::BEFORE)
    }

    /// Ends the lease; the run becomes due with the earliest of the steps that it waits for, without counting
    /// as an attempt. Unfinished steps that it does not wait for are closed: the code has dropped them, and
    /// they must not wake it.
    fn decide(&self, now: Timestamp, seen: &Aggregate, _: &Lease) -> Result<Change<Done>, Rejection> {
        let waits = &self.waits;
        let (closes, opens) = if waits.is_empty() { (vec![], vec![]) } else { named(seen, waits) };
        let earliest = if waits.is_empty() { seen.earliest_due() } else { earliest_of(seen, waits) };
        let waits = waits.clone();
        Ok(parked(now, seen, Change::nothing(Done::NOW), Parked { earliest, closes, opens, waits }))
    }

    fn ends(&self) -> Ends<'_> {
        Ends::Lease
    }
}

struct Parked<'a> {
    earliest: Option<(&'a Step, Timestamp)>,
    closes: Vec<Name>,
    opens: Vec<Name>,
    waits: Vec<Name>,
}

fn earliest_of<'a>(seen: &'a Aggregate, waits: &[Name]) -> Option<(&'a Step, Timestamp)> {
    let known = waits.iter().filter_map(|path| seen.steps.get(path));
    let timed = known.filter_map(|step| step.waits_until().map(|at| (step, at)));
    timed.min_by(|(a, a_at), (b, b_at)| (a_at, &a.path).cmp(&(b_at, &b.path)))
}

/// The steps that are closed because nobody waits for them, and the closed ones that somebody waits for after
/// all.
fn named(seen: &Aggregate, waits: &[Name]) -> (Vec<Name>, Vec<Name>) {
    let waited: HashSet<&Name> = waits.iter().collect();
    let dropped = seen.open_steps().filter(|step| !waited.contains(&step.path));
    let mut closes: Vec<Name> = dropped.map(|step| step.path.clone()).collect();
    let known = waited.into_iter().filter_map(|path| seen.steps.get(path));
    let mut opens: Vec<Name> =
        known.filter(|step| step.closed && step.unfinished()).map(|step| step.path.clone()).collect();
    closes.sort_unstable();
    opens.sort_unstable();
    (closes, opens)
}

/// `change`, and then parked in the same commit.
pub fn after_events<R>(now: Timestamp, seen: &Aggregate, change: Change<R>) -> Change<R> {
    let mut then = seen.open_part();
    then.apply(now, &change);
    let earliest = then.earliest_due();
    parked(now, &then, change, Parked { earliest, closes: vec![], opens: vec![], waits: vec![] })
}

/// `change`, and then ready for a worker at once: a step failed for good, and the function must hear of it.
pub fn ready_after<R>(now: Timestamp, seen: &Aggregate, mut change: Change<R>) -> Change<R> {
    let run = change.run.take().unwrap_or_else(|| seen.run.clone());
    change.run = Some(Run { state: State::Ready { since: now }, ..run });
    change
        .events
        .push((EventKind::RunParked { due_at: now, closes: vec![], opens: vec![], waits: vec![] }, None));
    change
}

/// Adds the park. `then` is the run as it stands after everything that comes before it.
fn parked<R>(
    now: Timestamp,
    then: &Aggregate,
    mut change: Change<R>,
    Parked { earliest, closes, opens, waits }: Parked<'_>,
) -> Change<R> {
    let natural = earliest.map_or(now, |(_, at)| at);
    let idle = then.is_idle_park(now, natural);
    // The floor under a run that would spin: due later than its steps say.
    let put_off = if idle { then.idle_delay_ms() } else { 0 };
    let due_at = if put_off > 0 { natural.max(now.plus_ms(put_off)) } else { natural };
    let state = waiting(earliest.map(|(step, _)| step), due_at, (put_off > 0).then_some(then.idle_parks));
    change.events.push((EventKind::RunParked { due_at, closes, opens, waits }, None));
    if idle && then.idle_parks + 1 >= IDLE_PARKS_MAX {
        let by = Name::from("spin");
        let why = format!(
            "it was given to a worker {IDLE_PARKS_MAX} times in a row and parked again each time, due at \
             once, without \
             anything recorded in between; look at what its function waits for, then: kagzi run resume {}",
            then.run.id
        );
        let paused = State::Paused { by: by.clone(), why: why.clone(), since: now };
        change.events.push((EventKind::RunPaused { by, why }, None));
        change.run = Some(Run { state: paused, ..then.run.clone() });
        ending::with_handler(then, &mut change);
        return change;
    }
    change.run = Some(Run { state, ..then.run.clone() });
    change
}

fn waiting(step: Option<&Step>, at: Timestamp, put_off: Option<u32>) -> State {
    match step {
        Some(Step { path, attempts, state: StepState::Waiting(Wait::Retry { failure, .. }), .. }) => {
            let failure = failure.clone();
            State::retry(Some(path.clone()), *attempts, at, failure)
        }
        Some(step) => State::timer(step.path.clone(), at),
        // Parked without anything to wait for: let a worker look again rather than wait for ever.
        None => match put_off {
            None => State::Ready { since: at },
            Some(attempt) => {
                let failure = Failure::new("SPIN", "the run was parked without anything to wait for");
                State::retry(None, attempt, at, failure)
            }
        },
    }
}
