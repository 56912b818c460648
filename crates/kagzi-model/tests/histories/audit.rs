//! Whatever is done to a run, the audit of its history finds nothing: what `kagzi verify` and the fault tests
//! complain of is never the work of `decide`.

use kagzi_model::Audit;
use proptest::prelude::*;

use crate::play::{Play, moves, setting};

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases(), ..ProptestConfig::default() })]

    #[test]
    fn the_audit_of_a_history_that_decide_has_written_finds_nothing(
        moves in moves(),
        setting in setting(),
    ) {
        let (mut play, mut audit, mut seen) = (Play::begin(setting), Audit::default(), 0);

        for a_move in &moves {
            play.step(a_move);
            play.events[seen..].iter().for_each(|event| audit.see(event));
            seen = play.events.len();

            let complaints = audit.complaints(&play.seen.run.state);
            let said = play.events.iter().map(|event| format!("{} {:?}", event.seq, event.kind));
            prop_assert!(complaints.is_empty(), "{:?}\n{}", complaints, said.collect::<Vec<_>>().join("\n"));
        }
    }
}
