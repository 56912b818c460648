//! Release: the run is given back, and nobody is charged.

use super::{ending, guard};
use crate::{
    Aggregate, Change, EventKind, Failure, LeaseRef, Millis, Name, Rejection, Reply, Run, State, Timestamp,
    codes,
    limits::{RELEASE_DELAY_MS, RELEASES_MAX},
};

/// Makes the run ready again: at once the first time, later the more often it happens without progress, and not any
/// more after some. Otherwise a run that nobody can execute would go round at full speed for ever.
pub fn decide(now: Timestamp, seen: &Aggregate, lease: &LeaseRef, why: &str) -> Result<Change, Rejection> {
    if guard::was_last(seen, lease) && !seen.run.state.finished() {
        return Ok(Change::nothing(Reply::Done { already: true }));
    }
    guard::held(seen, lease)?;
    let releases = seen.releases.saturating_add(1);
    let released = EventKind::RunReleased { why: why.to_owned() };
    if releases >= RELEASES_MAX {
        return Ok(quarantine(now, seen, released, (releases, why)));
    }
    let state = match delay_ms(releases) {
        0 => State::Ready { since: now },
        delay_ms => {
            let failure = Failure::new(codes::RELEASED, why);
            State::Retry { step: None, attempt: releases, at: now.plus_ms(delay_ms), failure }
        }
    };
    let run = Run { state, ..seen.run.clone() };
    Ok(Change::new(run, released, Reply::Done { already: false }))
}

/// None for the first, because most releases are a worker that leaves; then 250 ms, 500 ms, 1 s …
fn delay_ms(releases: u32) -> Millis {
    match releases.checked_sub(2) {
        Some(doublings) => RELEASE_DELAY_MS << doublings.min(RELEASES_MAX),
        None => 0,
    }
}

fn quarantine(now: Timestamp, seen: &Aggregate, released: EventKind, (releases, why): (u32, &str)) -> Change {
    let by = Name::from("quarantine");
    let why =
        format!("it was given back {releases} times in a row without progress, the last time because: {why}");
    let state = State::Paused { by: by.clone(), why: why.clone(), since: now };
    let mut change = Change {
        run: Some(Run { state, ..seen.run.clone() }),
        events: vec![(released, None), (EventKind::RunPaused { by, why }, None)],
        reply: Reply::Done { already: false },
        follow: vec![],
    };
    ending::with_handler(seen, &mut change);
    change
}
