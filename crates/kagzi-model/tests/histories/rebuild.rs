//! Memory and disk agree: a run rebuilt from what was written is the run that was kept in memory.

use crate::play::{Play, moves, setting};
use kagzi_model::{Aggregate, EventKind, Labels, RunOptions, State};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases(), ..ProptestConfig::default() })]

    #[test]
    fn a_run_rebuilt_from_its_stored_events_is_the_one_in_memory(moves in moves(), setting in setting()) {
        let mut play = Play::begin(setting);

        for a_move in &moves {
            play.step(a_move);

            let mut rebuilt = Aggregate::new(stored_row(&play.seen.run), 0);
            for event in &play.events {
                rebuilt.absorb(event.at, &stored(&event.kind));
                let bytes = event.payload.as_ref().map_or(0, |payload| payload.data.len() as u64);
                rebuilt.weigh(&event.kind, bytes);
            }
            prop_assert_eq!(&rebuilt, &play.seen);
        }
    }
}

/// The event as it comes back from a database.
fn stored(kind: &EventKind) -> EventKind {
    let json = serde_json::to_string(kind).unwrap();
    serde_json::from_str(&json).unwrap()
}

fn stored_row(run: &kagzi_model::Run) -> kagzi_model::Run {
    let state: State = serde_json::from_str(&serde_json::to_string(&run.state).unwrap()).unwrap();
    let options: RunOptions = serde_json::from_str(&serde_json::to_string(&*run.options).unwrap()).unwrap();
    let labels: Labels = serde_json::from_str(&serde_json::to_string(&run.labels).unwrap()).unwrap();
    kagzi_model::Run { state, options: options.into(), labels, ..run.clone() }
}
