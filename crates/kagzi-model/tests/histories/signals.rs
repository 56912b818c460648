//! What is told to a run is taken once, in order, or lies there; and nobody waits for what is there.

use std::collections::{HashMap, HashSet};

use crate::play::{Play, moves, setting};
use kagzi_model::{EventKind, Name, PROMISE_CHANNEL, Wake};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases(), ..ProptestConfig::default() })]

    #[test]
    fn i14_a_signal_counts_once_and_is_taken_once_in_order(moves in moves(), setting in setting()) {
        let mut play = Play::begin(setting);

        moves.iter().for_each(|a_move| drop(play.step(a_move)));

        let (mut came, mut taken) = (HashSet::new(), HashSet::new());
        let mut last_taken: HashMap<&Name, u64> = HashMap::new();
        let mut by_step: HashMap<&Name, (&Name, &Name)> = HashMap::new();
        for event in &play.events {
            match &event.kind {
                EventKind::SignalReceived { channel, id, .. } => {
                    prop_assert!(came.insert((channel, id)), "{} came twice on {}", id, channel);
                }
                // A promise that has failed is told again to code whose failure was forgiven.
                EventKind::WaitEnded { id, .. } if &**id == "again" => {}
                EventKind::WaitEnded { step, channel, id, received, .. } => {
                    if received.is_none() {
                        prop_assert!(came.insert((channel, id)), "{} came twice on {}", id, channel);
                    }
                    // A child's end that was forgiven is told once more.
                    let again = **id == *"again";
                    let is_new = taken.insert((channel, id)) || again;
                    prop_assert!(is_new, "{} was taken twice on {}", id, channel);
                    by_step.insert(step, (channel, id));
                    let came_at = received.unwrap_or(event.seq);
                    let before = last_taken.insert(channel, came_at);
                    prop_assert!(before.is_none_or(|before| before < came_at), "{} overtook another", id);
                }
                // The code dropped the wait before it heard: the signal lies in front of its channel again.
                EventKind::StepClosed { step, .. } => {
                    if let Some((channel, id)) = by_step.remove(step) {
                        taken.remove(&(channel, id));
                        last_taken.remove(channel);
                    }
                }
                // Its waits are forgotten with it, and what they took stays taken.
                EventKind::RunContinued { .. } => {
                    by_step.clear();
                    // But a promise belongs to its generation: the next one may make one of the same name.
                    came.retain(|(channel, _)| !channel.starts_with(PROMISE_CHANNEL));
                    taken.retain(|(channel, _)| !channel.starts_with(PROMISE_CHANNEL));
                    last_taken.retain(|channel, _| !channel.starts_with(PROMISE_CHANNEL));
                }
                _ => {}
            }
        }
        let unread = play.seen.mail.as_deref().map_or(0, |mail| mail.unread_len());
        let of_others = |(channel, _): &&(&Name, &Name)| !channel.starts_with('~');
        let (came, taken) = (came.iter().filter(of_others).count(), taken.iter().filter(of_others).count());
        prop_assert_eq!(unread, came - taken);
    }

    #[test]
    fn i15_a_run_parked_for_a_signal_has_an_open_wait_and_nothing_that_it_waits_for(
        moves in moves(),
        setting in setting(),
    ) {
        let mut play = Play::begin(setting);

        for a_move in &moves {
            play.step(a_move);

            let Some(parked) = play.seen.run.state.parked() else { continue };
            let Some(channel) = parked.wait.channel() else { continue };
            // One that wants all of them goes on waiting when the one that is shown has ended.
            let waits = parked.wake != Wake::First || play.seen.waits_on(channel).is_some();
            prop_assert!(waits && play.seen.open_len() > 0, "nobody waits on {}", channel);
            let there = play.seen.open_steps().find(|step| play.seen.is_signalled(step));
            prop_assert!(there.is_none(), "{:?} is there and nobody goes on", there);
        }
    }
}
