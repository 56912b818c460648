//! The identity of a scheduled run: it follows from the schedule and the nominal time, so that it is started
//! once.

use uuid::{Builder, Uuid};

use super::Schedule;
use crate::{Millis, Name, RunId, Timestamp, backoff::seed, rfc3339};

/// The business id of the run for a nominal time. The database lets one run have it.
pub fn business_id(schedule: &Name, at: Timestamp) -> Name {
    Name::from(format!("schedule:{schedule}:{}", rfc3339(at)))
}

/// The business id of a run that somebody triggered.
pub fn triggered_id(schedule: &Name, trigger: &Name) -> Name {
    Name::from(format!("schedule:{schedule}:trigger:{trigger}"))
}

/// The id of the run for a nominal time. Ids sort by when they fired and, of those that fire together, by
/// `number`, so that runs are also given out in that order.
pub(super) fn run_id(schedule: &Schedule, at: Timestamp, now: Timestamp, number: u64) -> RunId {
    let nominal = at.0.to_be_bytes();
    let bits = scramble(seed(&[schedule.uid.as_bytes(), &nominal[..]])).to_be_bytes();
    let mut random = [0; 10];
    random[2..].copy_from_slice(&bits);
    // Twelve bits are left beside the version: enough for the runs of one millisecond.
    random[..2].copy_from_slice(&u16::try_from(number % 4096).unwrap_or(0).to_be_bytes());
    let millis = u64::try_from(now.0 / 1000).unwrap_or(0);
    let id: Uuid = Builder::from_unix_timestamp_millis(millis, &random).into_uuid();
    RunId(id)
}

/// How long after its nominal time a run starts: below `jitter_ms`, and always the same for the same time.
pub(super) fn jitter_ms(schedule: &Name, at: Timestamp, jitter_ms: Millis) -> Millis {
    let Ok(width) = u64::try_from(jitter_ms) else { return 0 };
    if width == 0 {
        return 0;
    }
    let hash = scramble(seed(&[schedule.as_bytes(), &at.0.to_be_bytes()]));
    i64::try_from(hash % width).unwrap_or(0)
}

/// Spreads the bits of a hash whose input differs in the last bytes only (splitmix64).
fn scramble(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_canonical() {
        let id = business_id(&"nightly".into(), Timestamp::from_millis(1_794_800_000_000));

        assert_eq!(&*id, "schedule:nightly:2026-11-16T03:33:20Z");
    }

    #[test]
    fn jitter_is_fixed_per_time_and_spreads() {
        let jitter = |n: i64| jitter_ms(&"nightly".into(), Timestamp::from_millis(n * 60_000), 10_000);

        assert_eq!(jitter(7), jitter(7));
        assert!((0..1_000).map(jitter).all(|ms| (0..10_000).contains(&ms)));
        let distinct: std::collections::HashSet<_> = (0..100).map(jitter).collect();
        assert!(distinct.len() > 80, "{}", distinct.len());
        assert_eq!(jitter_ms(&"nightly".into(), Timestamp(0), 0), 0);
    }
}
