//! Park: nothing can go on before the earliest retry or sleep, or before somebody's word, so the lease ends
//! and the slot is free.

use std::collections::{HashMap, HashSet};

use super::{ending, lease_guard};
use crate::{
    Aggregate, Change, Done, Ends, EventKind, Failure, Lease, Name, Rejection, Rule, Run, State, Step,
    StepState, Timestamp, Unread, Wait, Wake, limits::IDLE_PARKS_MAX,
};

/// Ends the lease until the earliest of the retries and sleeps in `waits` is due or a signal comes for one of
/// them; unfinished steps that are not among them are closed. Empty: all that is unfinished, from workers
/// that cannot say what they wait for.
#[derive(Debug, Clone, PartialEq)]
pub struct Park {
    pub waits: Vec<Name>,
    /// Whether the first of them lets it go on, or the last. Beside anything that is over with time alone it
    /// is the first in any case.
    pub wake: Wake,
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
        let steps = awaited(seen, waits);
        let wake = self.wake_with(&steps);
        let awaited = Awaited { steps, closes, opens, waits: waits.clone(), wake };
        Ok(parked(now, seen, Change::nothing(Done::NOW), awaited, false))
    }

    fn ends(&self) -> Ends<'_> {
        Ends::Lease
    }
}

impl Park {
    /// Time wakes a run with the first of them, so only who waits for nothing but words can wait for all.
    fn wake_with(&self, steps: &[&Step]) -> Wake {
        let words_only = steps.iter().all(|step| waits_for_somebody(step).is_some());
        if words_only { self.wake } else { Wake::First }
    }
}

/// What the function waits for, and what it has dropped.
struct Awaited<'a> {
    steps: Vec<&'a Step>,
    closes: Vec<Name>,
    opens: Vec<Name>,
    waits: Vec<Name>,
    wake: Wake,
}

/// The steps that a park names, or all that are open.
fn awaited<'a>(seen: &'a Aggregate, waits: &[Name]) -> Vec<&'a Step> {
    if waits.is_empty() {
        return seen.open_steps().collect();
    }
    waits.iter().filter_map(|path| seen.steps.get(path)).filter(|step| !is_taken_back(step)).collect()
}

/// A question that the code has dropped is in nobody's inbox: it must be asked again, not waited for.
fn is_taken_back(step: &Step) -> bool {
    step.closed && matches!(&step.state, StepState::Waiting(Wait::Person { .. }))
}

fn earliest_of<'a>(steps: &[&'a Step]) -> Option<(&'a Step, Timestamp)> {
    let timed = steps.iter().filter_map(|step| step.waits_until().map(|at| (*step, at)));
    timed.min_by(|(a, a_at), (b, b_at)| (a_at, &a.path).cmp(&(b_at, &b.path)))
}

/// The steps that are closed because nobody waits for them, and the closed ones that somebody waits for after
/// all.
fn named(seen: &Aggregate, waits: &[Name]) -> (Vec<Name>, Vec<Name>) {
    let waited: HashSet<&Name> = waits.iter().collect();
    let dropped = seen.open_steps().filter(|step| !waited.contains(&step.path));
    let mut closes: Vec<Name> = dropped.map(|step| step.path.clone()).collect();
    let known = waited.into_iter().filter_map(|path| seen.steps.get(path));
    let mut opens: Vec<Name> = known
        .filter(|step| step.closed && step.unfinished() && !is_taken_back(step))
        .map(|step| step.path.clone())
        .collect();
    closes.sort_unstable();
    opens.sort_unstable();
    (closes, opens)
}

/// `change`, and then parked in the same commit.
pub fn after_events<R>(now: Timestamp, seen: &Aggregate, change: Change<R>) -> Change<R> {
    let mut then = seen.open_part();
    then.apply(now, &change);
    let steps = awaited(&then, &[]);
    let awaited = Awaited { steps, closes: vec![], opens: vec![], waits: vec![], wake: Wake::First };
    parked(now, &then, change, awaited, false)
}

/// `change`, which may have begun a wait, and then what `park` makes of it. The run is not copied for it: one
/// that has taken ten thousand signals waits for the next as fast as for its first.
pub fn named_after<R>(now: Timestamp, seen: &Aggregate, change: Change<R>, park: &Park) -> Change<R> {
    if park.waits.is_empty() {
        return after_events(now, seen, change);
    }
    let begun = change.events.iter().find_map(|(kind, _)| begun(now, seen, kind));
    let (closes, mut opens) = named(seen, &park.waits);
    opens.retain(|path| begun.as_ref().is_none_or(|begun| begun.path != *path));
    let step =
        |path: &Name| begun.as_ref().filter(|begun| begun.path == *path).or_else(|| seen.steps.get(path));
    let steps: Vec<&Step> = park.waits.iter().filter_map(step).filter(|step| !is_taken_back(step)).collect();
    let (waits, wake) = (park.waits.clone(), park.wake_with(&steps));
    parked(now, seen, change, Awaited { steps, closes, opens, waits, wake }, begun.is_some())
}

/// The step as it stands once this wait has begun.
fn begun(now: Timestamp, seen: &Aggregate, kind: &EventKind) -> Option<Step> {
    let EventKind::WaitBegan { step: path, position, channel, until } = kind else { return None };
    let known = seen.steps.get(path);
    Some(Step {
        path: path.clone(),
        position: *position,
        attempts: 0,
        attempts_before_reset: known.map_or(0, |known| known.attempts_before_reset),
        since: known.map_or(now, |known| known.since),
        order: known.map_or(0, |known| known.order),
        after: known.map_or(seen.told, |known| known.after),
        closed: false,
        state: StepState::Waiting(Wait::on(channel.clone(), *until)),
    })
}

/// `change` may have moved the time at which a wait is over by itself: a run that is parked in its steps is
/// due with the earliest of them as they stand now.
pub fn due_anew<R>(now: Timestamp, seen: &Aggregate, mut change: Change<R>) -> Change<R> {
    let Some(parked) = seen.run.state.parked().filter(|parked| parked.step.is_some()) else { return change };
    let mut then = seen.open_part();
    then.apply(now, &change);
    let steps: Vec<&Step> = then.open_steps().collect();
    if let Some(shown) = shown(&steps).filter(|_| parked.wait.channel().is_some()) {
        let at = earliest_of(&steps).map(|(_, at)| at);
        let state = waiting_for_somebody(shown, at, others(&steps), parked.wake);
        change.run = Some(Run { state, ..seen.run.clone() });
    }
    change
}

/// `change`, and then ready for a worker at once: a step failed for good, and the function must hear of it.
pub fn ready_after<R>(now: Timestamp, seen: &Aggregate, mut change: Change<R>) -> Change<R> {
    let run = change.run.take().unwrap_or_else(|| seen.run.clone());
    change.run = Some(Run { state: State::Ready { since: now }, ..run });
    change.events.push((
        EventKind::RunParked { due_at: Some(now), closes: vec![], opens: vec![], waits: vec![], wake: None },
        None,
    ));
    change
}

/// Adds the park. `then` is the run as it stands after everything that comes before it, but for its row and
/// for what `moved` says: that `change` has recorded something.
fn parked<R>(
    now: Timestamp,
    then: &Aggregate,
    mut change: Change<R>,
    awaited: Awaited<'_>,
    moved: bool,
) -> Change<R> {
    let run = change.run.take().unwrap_or_else(|| then.run.clone());
    let Awaited { mut steps, closes, opens, waits, wake } = awaited;
    let (ended, is_reached) = signalled(then, &steps, wake);
    if is_reached {
        // A signal came while the park was on its way: the function goes on with it at once.
        let (due_at, wake) = (Some(now), told(wake));
        change.events.push((EventKind::RunParked { due_at, closes, opens, waits, wake }, None));
        change.events.extend(ended.into_iter().map(|(ended, _)| (ended, None)));
        change.run = Some(Run { state: State::Ready { since: now }, ..run });
        return change;
    }
    if !ended.is_empty() {
        let over: HashSet<&Name> = ended.iter().map(|(_, step)| &step.path).collect();
        steps.retain(|step| !over.contains(&step.path));
    }
    let earliest = earliest_of(&steps);
    let shown = shown(&steps);
    let natural = match (earliest, shown) {
        (Some((_, at)), _) => Some(at),
        (None, Some(_)) => None,
        // Parked without anything to wait for: let a worker look again rather than wait for ever.
        (None, None) => Some(now),
    };
    let idle = !moved && then.is_idle_park(now, natural);
    // The floor under a run that would spin: due later than its steps say.
    let put_off = if idle { then.idle_delay_ms() } else { 0 };
    let due_at = natural.map(|at| if put_off > 0 { at.max(now.plus_ms(put_off)) } else { at });
    let state = match (shown, due_at) {
        (Some(step), at) => waiting_for_somebody(step, at, others(&steps), wake),
        (None, at) => {
            let put_off = (put_off > 0).then_some(then.idle_parks);
            waiting(earliest.map(|(step, _)| step), at.unwrap_or(now), put_off)
        }
    };
    let wake = told(wake);
    change.events.push((EventKind::RunParked { due_at, closes, opens, waits, wake }, None));
    change.events.extend(ended.into_iter().map(|(ended, _)| (ended, None)));
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
        change.run = Some(Run { state: paused, ..run });
        ending::with_handler(then, &mut change);
        return change;
    }
    change.run = Some(Run { state, ..run });
    change
}

/// As an event says it: nothing where it is as usual.
fn told(wake: Wake) -> Option<Wake> {
    (wake != Wake::First).then_some(wake)
}

/// What has come for the waits while the park was on its way, and whether the function goes on with it. As a
/// rule only one signal is taken, because what the function makes of it may be that it does not wait for the
/// others any more; one that wants all of them takes all that there are.
fn signalled<'a>(then: &Aggregate, steps: &[&'a Step], wake: Wake) -> (Vec<(EventKind, &'a Step)>, bool) {
    let Some(mail) = then.mail.as_deref() else { return (Vec::new(), false) };
    let mut waiting: Vec<(&Step, &Name)> = steps
        .iter()
        .filter_map(|step| {
            let StepState::Waiting(wait) = &step.state else { return None };
            Some((*step, wait.channel()?))
        })
        .collect();
    waiting.sort_unstable_by_key(|(step, _)| (step.since, &step.path));
    // Each of several waits on one channel has a signal of its own, the oldest wait the oldest signal.
    let mut given: HashMap<&Name, usize> = HashMap::new();
    let mut there: Vec<(&Unread, &'a Step, &Name)> = Vec::new();
    for (step, channel) in waiting {
        let nth = given.entry(channel).or_default();
        if let Some(signal) = mail.unread_on(channel).nth(*nth) {
            there.push((signal, step, channel));
            *nth += 1;
        }
    }
    there.sort_by_key(|(signal, ..)| signal.seq);
    match wake {
        Wake::First => there.truncate(1),
        Wake::Last | Wake::LastOrFailed => {}
    }
    let failed = there.iter().any(|(signal, ..)| signal.failure.is_some());
    let is_reached = !there.is_empty() && wake.is_reached(failed, steps.len() - there.len());
    let ended = |(signal, step, channel): (&Unread, &'a Step, &Name)| {
        let event = EventKind::WaitEnded {
            step: step.path.clone(),
            position: step.position,
            channel: channel.clone(),
            id: signal.id.clone(),
            received: Some(signal.seq),
            failure: signal.failure.clone(),
            published: None,
        };
        (event, step)
    };
    (there.into_iter().map(ended).collect(), is_reached)
}

/// The wait for somebody that people are shown: the oldest.
fn shown<'a>(steps: &[&'a Step]) -> Option<(&'a Step, &'a Wait)> {
    let waits = steps.iter().filter_map(|step| Some((*step, waits_for_somebody(step)?)));
    waits.min_by(|(a, _), (b, _)| (a.since, &a.path).cmp(&(b.since, &b.path)))
}

fn waits_for_somebody(step: &Step) -> Option<&Wait> {
    match &step.state {
        StepState::Waiting(wait) => wait.channel().is_some().then_some(wait),
        StepState::Running { .. } | StepState::Done(_) => None,
    }
}

/// How many wait for somebody beside the one that is shown.
fn others(steps: &[&Step]) -> u32 {
    let count = steps.iter().filter(|step| waits_for_somebody(step).is_some()).count();
    u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX)
}

fn waiting_for_somebody(
    (step, wait): (&Step, &Wait),
    at: Option<Timestamp>,
    others: u32,
    wake: Wake,
) -> State {
    let (path, wait, since) = (Some(step.path.clone()), wait.clone(), Some(step.since));
    State::Waiting(Box::new(crate::Parked { step: path, attempt: 0, at, wait, since, others, wake }))
}

fn waiting(step: Option<&Step>, at: Timestamp, put_off: Option<u32>) -> State {
    match step {
        Some(Step { path, attempts, state: StepState::Waiting(Wait::Retry { failure, .. }), .. }) => {
            State::retry(Some(path.clone()), *attempts, at, failure.clone())
        }
        Some(step) => State::timer(step.path.clone(), at),
        None => match put_off {
            None => State::Ready { since: at },
            Some(attempt) => {
                let failure = Failure::new("SPIN", "the run was parked without anything to wait for");
                State::retry(None, attempt, at, failure)
            }
        },
    }
}
