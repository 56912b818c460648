//! Release: the run is given back, and no attempt is counted.

use super::{ending, lease_guard};
use crate::{
    Aggregate, Change, Done, Ends, EventKind, Failure, Lease, Millis, Name, Rejection, Rule, Run, State,
    Timestamp, codes,
    limits::{RELEASE_DELAY_MS, RELEASES_MAX},
};

/// Gives the run back without counting as an attempt. The more often that happens without progress, the
/// longer it waits.
#[derive(Debug, Clone, PartialEq)]
pub struct Release {
    pub why: String,
}

impl Rule for Release {
    type Sender = Lease;
    type Reply = Done;

    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Done> {
        lease_guard::given_up(seen).then_some(Done::BEFORE)
    }

    /// Makes the run ready again: at once the first time, later the more often it happens without progress,
    /// and not any more after some. Otherwise a run that nobody can execute would go round at full speed for
    /// ever.
    fn decide(&self, now: Timestamp, seen: &Aggregate, _: &Lease) -> Result<Change<Done>, Rejection> {
        let why = &self.why;
        let releases = seen.releases.saturating_add(1);
        let released = EventKind::RunReleased { why: why.clone() };
        if releases >= RELEASES_MAX {
            let why = format!(
                "it was given back {releases} times in a row without progress, the last time because: {why}"
            );
            return Ok(quarantine(now, seen, released, why));
        }
        let state = match delay_ms(releases) {
            0 => State::Ready { since: now },
            delay_ms => {
                let failure = Failure::new(codes::RELEASED, why);
                State::retry(None, releases, now.plus_ms(delay_ms), failure)
            }
        };
        Ok(Change::new(Run { state, ..seen.run.clone() }, released, Done::NOW))
    }

    fn ends(&self) -> Ends<'_> {
        Ends::Lease
    }
}

/// None for the first, because most releases are a worker that leaves; then 250 ms, 500 ms, 1 s …
fn delay_ms(releases: u32) -> Millis {
    match releases.checked_sub(2) {
        Some(doublings) => RELEASE_DELAY_MS << doublings.min(RELEASES_MAX),
        None => 0,
    }
}

fn quarantine(now: Timestamp, seen: &Aggregate, released: EventKind, why: String) -> Change<Done> {
    let by = Name::from("quarantine");
    let state = State::Paused { by: by.clone(), why: why.clone(), since: now };
    let mut change = Change {
        run: Some(Run { state, ..seen.run.clone() }),
        events: vec![(released, None), (EventKind::RunPaused { by, why }, None)],
        reply: Done::NOW,
        follow: vec![],
    };
    ending::with_handler(seen, &mut change);
    change
}
