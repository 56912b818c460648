//! A run that waits for a person can always be answered: it has a question that is open.

use kagzi_model::{Name, StepState, Wait, intervention::is_person_channel};
use proptest::prelude::*;

use crate::play::{Play, moves, setting};

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases(), ..ProptestConfig::default() })]

    #[test]
    fn i19_nobody_waits_for_a_person_without_an_open_question_or_its_answer(
        moves in moves(),
        setting in setting(),
    ) {
        let mut play = Play::begin(setting);

        for a_move in &moves {
            play.step(a_move);

            let seen = &play.seen;
            let mail = seen.mail.as_deref();
            let open = |step: &Name| mail.is_some_and(|mail| mail.questions().contains_key(step));
            if let Some(parked) = seen.run.state.parked()
                && let Wait::Person { .. } = &parked.wait
            {
                let step = parked.step.as_ref().expect("a person is asked by a step");
                prop_assert!(open(step), "{:?} left {} without a question", a_move, step);
            }
            for step in mail.iter().flat_map(|mail| mail.questions().keys()) {
                prop_assert!(!seen.run.state.finished(), "an ended run asks nobody");
                let known = &seen.steps[step];
                let waits = matches!(&known.state, StepState::Waiting(Wait::Person { channel, .. })
                    if is_person_channel(channel));
                prop_assert!(waits && !known.closed, "{:?} left a question that nobody wants", a_move);
            }
        }
    }
}
