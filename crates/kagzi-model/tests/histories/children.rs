//! What a run has started ends with it, as it asked for, and is told to it at most once.

use std::collections::HashMap;

use crate::play::{Move, Play, moves, setting};
use kagzi_model::{Act, ClosePolicy, EventKind, Order, RunId, child_of};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases(), ..ProptestConfig::default() })]

    #[test]
    fn i16_the_children_of_an_ended_run_are_closed_as_they_were_started_and_nobody_else_is(
        moves in moves(),
        setting in setting(),
    ) {
        let mut play = Play::begin(setting);
        moves.iter().for_each(|a_move| drop(play.step(a_move)));
        play.step(&Move::Cancel);

        let mut closed = HashMap::new();
        for _ in 0..5 {
            let Some(played) = play.step(&Move::Expire) else { continue };
            for command in played.decided.map(|change| change.follow).unwrap_or_default() {
                let Act::Order { order, .. } = &command.act else { continue };
                let close = match order {
                    Order::Cancel(_) => ClosePolicy::Cancel,
                    Order::Terminate(_) => ClosePolicy::Terminate,
                    other => panic!("{other:?}"),
                };
                prop_assert!(closed.insert(command.run.id, close).is_none(), "closed twice");
            }
        }

        prop_assert_eq!(play.seen.run.close_at, None, "nothing is left to close");
        prop_assert_eq!(play.seen.run.sweep_at(), None);
        let mut expected: HashMap<RunId, ClosePolicy> = HashMap::new();
        let mut asked: HashMap<RunId, ClosePolicy> = closed;
        for event in &play.events {
            match &event.kind {
                EventKind::ChildStarted { child, close, .. } if *close != ClosePolicy::Abandon => {
                    expected.insert(*child, *close);
                }
                EventKind::SignalReceived { channel, .. } | EventKind::WaitEnded { channel, .. } => {
                    if let Some(child) = child_of(channel).filter(|child| !asked.contains_key(child)) {
                        expected.remove(&child);
                    }
                }
                // Closed at an earlier end of the run, by an Expire among the moves.
                EventKind::ChildrenClosed { children } => {
                    for child in children.iter().filter(|child| !asked.contains_key(child)) {
                        expected.remove(child);
                    }
                }
                _ => {}
            }
        }
        asked.retain(|child, _| expected.contains_key(child));
        prop_assert_eq!(asked, expected);
    }
}
