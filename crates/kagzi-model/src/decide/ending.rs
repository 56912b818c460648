//! The one way in which a run ends badly: whatever the cause, its handler is started in the same commit.

use super::child_ended::tell_parent;
use crate::{
    Aggregate, Change, Command, EventKind, Failure, Family, Payload, Run, RunKey, State, Timestamp,
    act::NoteHandler, failure_handler::own_handler,
};

/// How it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Failed,
    TimedOut,
}

/// Ends the run and starts the handler that it asked for.
pub fn end<R>(now: Timestamp, seen: &Aggregate, ending: Ending, failure: Failure, reply: R) -> Change<R> {
    let (state, event) = match ending {
        Ending::Failed => (
            State::Failed { failure: failure.clone() },
            EventKind::RunFailed { failure, step: None, by: None },
        ),
        Ending::TimedOut => {
            (State::TimedOut { failure: failure.clone() }, EventKind::RunTimedOut { failure })
        }
    };
    let attempts = seen.run.attempts.saturating_add(u32::from(ending == Ending::Failed));
    let run = ended(now, seen, Run { state, attempts, ..seen.run.clone() });
    let mut change = Change::new(run, event, reply);
    with_handler(seen, &mut change);
    change
}

/// Adds the handler's start, and for a handler the note on the run whose failure it handles.
pub fn with_handler<R>(seen: &Aggregate, change: &mut Change<R>) {
    if let Some((start, event)) = own_handler(seen) {
        change.events.push((event, None));
        change.follow.push(start);
    }
    if let Some(ended) = &change.run
        && ended.state.finished()
    {
        tell(seen, ended, None, &mut change.follow);
    }
}

/// The row of a run that ends now: if it has children that end with it, they are closed next.
#[inline(always)]
pub fn ended(now: Timestamp, seen: &Aggregate, mut run: Run) -> Run {
    run.finished_at = Some(now);
    if seen.family.as_deref().is_some_and(Family::has_to_close) {
        run.close_at = Some(now);
    }
    run
}

/// Adds whom the end of a run concerns: the run whose failure it handles, and its parent.
#[inline(always)]
pub fn tell(seen: &Aggregate, ended: &Run, output: Option<&Payload>, follow: &mut Vec<Command>) {
    // Most runs concern nobody.
    let options = &ended.options;
    if options.handler_of.is_some() || options.parent.is_some() {
        follow.extend(note(ended));
        follow.extend(tell_parent(seen, ended, output));
    }
}

/// Tells the failed run how its handler ended.
fn note(ended: &Run) -> Option<Command> {
    let failed = ended.options.handler_of?;
    let outcome = match ended.failure() {
        Some(failure) => format!("{}: {}", ended.state.status().name(), failure.message),
        None => ended.state.status().name().to_owned(),
    };
    let failed = RunKey::new(ended.namespace.clone(), failed);
    Some(failed.duty(NoteHandler { handler: ended.id, outcome }))
}
