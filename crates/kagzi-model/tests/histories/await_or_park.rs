//! A wait that parks in the same commit leaves what the wait and then the park would have left.

use crate::play::{CHANNELS, PATHS, Play, moves, setting};
use kagzi_model::{Aggregate, Change, LeaseRef, Reply, StepRef, Timestamp, Waited, Wake, act, decide};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases(), ..ProptestConfig::default() })]

    #[test]
    fn one_commit_leaves_what_two_would_have_left(moves in moves(), setting in setting()) {
        let mut play = Play::begin(setting);
        for a_move in &moves {
            play.step(a_move);
            if play.seen.run.lease().is_none() {
                continue;
            }
            for (position, path) in (0..).zip(PATHS) {
                for channel in CHANNELS {
                    let (step, channel) = (StepRef { path: path.into(), position }, channel.into());
                    let (timeout_ms, last_call, park) = (None, false, false);
                    let wait = act::AwaitSignal { step, channel, timeout_ms, last_call, park };
                    for waits in [vec![path.into()], vec![path.into(), PATHS[0].into()]] {
                        let park = act::Park { waits, wake: Wake::First };
                        compare(play.now, &play.seen, act::AwaitOrPark { wait: wait.clone(), park })?;
                    }
                }
            }
        }
    }
}

fn compare(now: Timestamp, seen: &Aggregate, both: act::AwaitOrPark) -> Result<(), TestCaseError> {
    let run = &seen.run;
    let lease = LeaseRef { namespace: run.namespace.clone(), run: run.id, epoch: run.epoch };
    let mut apart = seen.clone();
    let mut events = Vec::new();
    let mut take = |apart: &mut Aggregate, change: Change| {
        apart.apply(now, &change);
        events.extend(change.events);
        change.reply
    };
    let together = decide(now, Some(seen), None, &lease.report(both.clone()));

    let waited = match decide(now, Some(&apart), None, &lease.report(both.wait)) {
        Ok(change) => take(&mut apart, change),
        Err(refused) => {
            prop_assert_eq!(together.unwrap_err(), refused);
            return Ok(());
        }
    };
    // Paused instead: the path was recorded at another position.
    let paused = apart.run.lease().is_none();
    if matches!(waited, Reply::Waited(Waited::Until(_))) && !paused {
        let parked = decide(now, Some(&apart), None, &lease.report(both.park)).unwrap();
        take(&mut apart, parked);
    }

    let together = together.unwrap();
    let mut one = seen.clone();
    one.apply(now, &together);
    prop_assert_eq!(&together.reply, &waited);
    prop_assert_eq!(&together.events, &events);
    prop_assert_eq!(&one, &apart);
    Ok(())
}
