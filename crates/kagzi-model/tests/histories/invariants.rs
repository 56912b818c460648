//! The guarantees of DESIGN.md that one run can keep or break by itself, on random histories.

use std::collections::HashSet;

use crate::play::{Attempt, Move, Play, Played, Setting, What, ends_run, moves, setting};
use kagzi_model::{
    Act, Change, Duty, EventKind, Order, Reply, Report, Run, State, StepEnd, StepState, Timestamp, Wait,
};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases(), ..ProptestConfig::default() })]

    #[test]
    fn i1_an_ended_run_never_changes_unless_a_person_reopens_it(moves in moves(), setting in setting()) {
        let mut play = Play::begin(setting);

        for a_move in &moves {
            let ended = play.seen.run.state.finished().then(|| play.seen.clone());
            play.step(a_move);

            if let (Some(ended), false) = (ended, matches!(a_move, Move::Reopen)) {
                // Its children are closed, and may be heard of: nothing else moves.
                let of_children = matches!(a_move, Move::Expire | Move::ChildEnds { .. });
                if of_children && ended.family.is_some() {
                    let close_at = ended.run.close_at;
                    prop_assert_eq!(Run { close_at, ..play.seen.run.clone() }, ended.run);
                    prop_assert_eq!(&play.seen.steps, &ended.steps);
                } else {
                    prop_assert_eq!(&play.seen, &ended);
                }
            }
        }
        let count = |wanted: fn(&EventKind) -> bool| {
            play.events.iter().filter(|event| wanted(&event.kind)).count()
        };
        let reopened = count(|kind| matches!(kind, EventKind::RunReopened { .. }));
        prop_assert_eq!(count(ends_run) - reopened, usize::from(play.seen.run.state.finished()));
        prop_assert_eq!(play.seen.run.finished_at.is_some(), play.seen.run.state.finished());
    }

    #[test]
    fn i2_a_step_has_at_most_one_recorded_result(moves in moves(), setting in setting()) {
        let mut play = Play::begin(setting);

        moves.iter().for_each(|a_move| drop(play.step(a_move)));

        let (mut recorded, mut waits) = (HashSet::new(), HashSet::new());
        for event in &play.events {
            match &event.kind {
                EventKind::StepCompleted { step, .. } => {
                    prop_assert!(recorded.insert(step.clone()), "{} was recorded twice", step);
                }
                EventKind::WaitEnded { step, failure: None, .. } => {
                    prop_assert!(recorded.insert(step.clone()), "{} was recorded twice", step);
                    waits.insert(step.clone());
                }
                // A wait that the code dropped before it heard has no result: its signal lies there again.
                EventKind::StepClosed { step, .. } if waits.remove(step) => drop(recorded.remove(step)),
                // Another generation has steps of its own.
                EventKind::RunContinued { .. } => {
                    recorded.clear();
                    waits.clear();
                }
                _ => {}
            }
        }
    }

    #[test]
    fn i3_epochs_only_rise_and_a_write_needs_the_current_lease(moves in moves(), setting in setting()) {
        let mut play = Play::begin(setting);

        for a_move in &moves {
            let Some(Played { command, before, decided }) = play.step(a_move) else { continue };

            let (was, is) = (before.run.epoch, play.seen.run.epoch);
            let claimed = matches!(command.act, Act::Duty(Duty::Claim(_))) && decided.is_ok();
            prop_assert_eq!(is, was + u64::from(claimed));
            if let (Act::Report { epoch, .. }, Ok(change)) = (&command.act, &decided)
                && !wrote_nothing(change)
            {
                prop_assert_eq!(*epoch, was, "{:?}", &command);
                prop_assert!(before.run.lease().is_some(), "{:?}", &command);
            }
        }
    }

    #[test]
    fn i4_a_living_run_has_exactly_one_reason_to_wake(moves in moves(), setting in setting()) {
        let mut play = Play::begin(setting);

        for a_move in &moves {
            play.step(a_move);

            let run = &play.seen.run;
            let paused = matches!(run.state, State::Paused { .. });
            // One that waits for somebody has no time at which it goes on by itself.
            let waits = run.due_at().is_some() || run.state.parked().is_some();
            let reasons = [waits, run.lease().is_some(), paused];
            let count = reasons.iter().filter(|reason| **reason).count();
            prop_assert_eq!(count, usize::from(!run.state.finished()));
            prop_assert_eq!(run.state.reason().is_none(), run.state.finished());
            if let Some(lease) = run.lease() {
                let sweep_at = run.sweep_at().expect("a lease must be swept");
                prop_assert!(sweep_at <= lease.until, "the sweep would miss the lease's end");
            }
            if let Some(deadline) = run.deadline_at.filter(|_| !run.state.finished()) {
                prop_assert!(run.sweep_at().is_some_and(|at| at <= deadline));
            }
            if run.state.finished() {
                prop_assert_eq!(run.sweep_at(), run.close_at);
                let left = play.seen.family.as_deref().is_some_and(kagzi_model::Family::has_to_close);
                prop_assert!(run.close_at.is_some() || !left, "children are left, and nobody closes them");
            } else {
                prop_assert_eq!(run.close_at, None);
            }
        }
    }

    #[test]
    fn i6_nothing_is_leased_or_woken_early(moves in moves(), setting in setting()) {
        let mut play = Play::begin(setting);

        for a_move in &moves {
            let Some(Played { command, before, decided }) = play.step(a_move) else { continue };

            if matches!(command.act, Act::Duty(Duty::Claim(_))) && decided.is_ok() {
                prop_assert!(before.run.due_at().is_some_and(|due| due <= play.now));
            }
            for (path, step) in &play.seen.steps {
                let slept = step.state == StepState::Done(StepEnd::Elapsed);
                if let (true, Some(StepState::Waiting(Wait::Timer { until }))) =
                    (slept, before.steps.get(path).map(|before| &before.state))
                {
                    prop_assert!(*until <= play.now, "{} was woken early", path);
                }
            }
        }
    }

    #[test]
    fn i6_a_parked_run_is_due_with_its_earliest_step(moves in moves(), setting in setting()) {
        let mut play = Play::begin(setting);

        for a_move in &moves {
            let Some(Played { command, decided: Ok(change), .. }) = play.step(a_move) else { continue };
            // A step that the server timed out for good wakes the run at once: its function must hear of it.
            if matches!(command.act, Act::Duty(Duty::Expire(_))) {
                continue;
            }

            if let Some((EventKind::RunParked { due_at, .. }, _)) = change.events.last() {
                let earliest = play.seen.steps.values().filter_map(|step| step.due_at()).min();
                let waits_for_somebody = play.seen.open_steps().any(|step| match &step.state {
                    StepState::Waiting(wait) => wait.channel().is_some(),
                    StepState::Running { .. } | StepState::Done(_) => false,
                });
                let natural = earliest.or((!waits_for_somebody).then_some(play.now));
                // A run that was parked again and again without anything recorded is put off.
                if play.seen.idle_parks <= 2 {
                    prop_assert_eq!(*due_at, natural);
                } else {
                    prop_assert!(*due_at >= natural && due_at.is_none_or(|due_at| due_at > play.now));
                }
                prop_assert_eq!(play.seen.run.due_at(), *due_at);
            }
        }
    }

    #[test]
    fn i8_after_a_cancel_nothing_happens_unless_a_person_reopens_it(
        moves in moves(),
        setting in setting(),
    ) {
        let mut play = Play::begin(setting);

        for a_move in &moves {
            let Some(Played { command, before, decided }) = play.step(a_move) else { continue };

            let cancelled = matches!(before.run.state, State::Cancelled { .. });
            let retried = matches!(command.act, Act::Order { order: Order::Retry(_), .. });
            let of_children = matches!(command.act, Act::Duty(Duty::Expire(_) | Duty::ChildEnded(_)));
            let excused = retried || (of_children && before.family.is_some());
            if let (true, false, Ok(change)) = (cancelled, excused, decided) {
                prop_assert!(wrote_nothing(&change), "{:?} wrote {:?}", command, change);
            }
        }
    }

    #[test]
    fn i11_sequence_numbers_have_no_gap(moves in moves(), setting in setting()) {
        let mut play = Play::begin(setting);

        moves.iter().for_each(|a_move| drop(play.step(a_move)));

        let numbers: Vec<u64> = play.events.iter().map(|event| event.seq).collect();
        prop_assert_eq!(numbers, (1..=play.seen.last_seq).collect::<Vec<_>>());
    }

    #[test]
    fn a_command_sent_again_is_answered_and_writes_nothing(moves in moves(), setting in setting()) {
        let mut play = Play::begin(setting);

        for a_move in &moves {
            let Some(Played { command, decided, .. }) = play.step(a_move) else { continue };
            // What time has ended has children left: the next look is for those.
            let closes = matches!(a_move, Move::Expire) && play.seen.run.close_at.is_some();
            if decided.is_err() || !repeatable(a_move) || closes {
                continue;
            }

            let again = play.send(&command);

            if let Ok(Change { reply: Reply::Blocked(_), .. }) = decided {
                // It was refused the first time, and paused the run.
                prop_assert!(again.is_err(), "{:?} sent again was accepted", command);
                continue;
            }
            let change = again.unwrap_or_else(|refused| panic!("{command:?} sent again: {refused}"));
            prop_assert!(wrote_nothing(&change), "{:?} sent again wrote {:?}", command, change);
        }
    }

    #[test]
    fn a_lease_is_never_shortened_by_a_heartbeat(moves in moves(), setting in setting()) {
        let mut play = Play::begin(setting);

        for a_move in &moves {
            let Some(Played { command, before, decided }) = play.step(a_move) else { continue };

            if let (Act::Report { report: Report::Renew(renew), .. }, Ok(_)) = (command.act, decided) {
                let lease_end = |at: &kagzi_model::Aggregate| at.run.lease().expect("renewed").until;
                prop_assert_eq!(lease_end(&play.seen), lease_end(&before).max(renew.until));
            }
        }
    }

    #[test]
    fn a_run_is_quarantined_before_it_takes_a_fourth_worker_down(moves in moves(), setting in setting()) {
        let mut play = Play::begin(setting);

        for a_move in &moves {
            play.step(a_move);

            let run = &play.seen.run;
            prop_assert!(run.crashes <= kagzi_model::limits::LOSSES_STANDARD);
            if run.crashes == kagzi_model::limits::LOSSES_STANDARD {
                prop_assert!(!matches!(run.state, State::Leased(_)), "leased after {} crashes", run.crashes);
            }
        }
    }

    #[test]
    fn a_run_is_quarantined_before_it_is_given_back_too_often(moves in moves(), setting in setting()) {
        let mut play = Play::begin(setting);

        for a_move in &moves {
            play.step(a_move);

            let releases = play.seen.releases;
            prop_assert!(releases <= kagzi_model::limits::RELEASES_MAX);
            if releases == kagzi_model::limits::RELEASES_MAX {
                let state = &play.seen.run.state;
                prop_assert!(!matches!(state, State::Leased(_)), "leased after {releases} releases");
            }
        }
    }
}

fn wrote_nothing(change: &Change) -> bool {
    change.run.is_none() && change.events.is_empty() && change.follow.is_empty()
}

/// Every command but `Claim`, which asks for a new lease each time, `Progress`, which has no identity, and
/// `Retry`, whose repeat is told that the run is open. `FailStep` tells a repeat from the next
/// failure by the attempt's number, so an odd number is excused.
fn repeatable(a_move: &Move) -> bool {
    match a_move {
        Move::Pass { .. } | Move::Lease { .. } | Move::Reopen => false,
        Move::Write { what: What::Progress { .. }, .. } => false,
        Move::Write { what: What::FailStep { attempt, .. }, .. } => matches!(attempt, Attempt::Next),
        Move::Write { .. } | Move::Orphan { .. } | Move::Expire | Move::Resume => true,
        Move::Cancel | Move::Terminate | Move::Signal { .. } | Move::ChildEnds { .. } => true,
        Move::Promise { .. } | Move::Beat | Move::Answer { .. } => true,
    }
}

#[test]
fn random_histories_get_somewhere() {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let (mut accepted, mut refused, mut kinds) = (0, 0, HashSet::new());

    for _ in 0..300 {
        let mut play = Play::begin(Setting { deadline_ms: Some(300_000), run_retry: true });
        for a_move in moves().new_tree(&mut runner).unwrap().current() {
            match play.step(&a_move) {
                Some(Played { decided: Ok(_), .. }) => accepted += 1,
                Some(Played { decided: Err(_), .. }) => refused += 1,
                None => {}
            }
        }
        kinds.extend(play.events.iter().map(|event| event.kind.name().to_owned()));
        assert!(play.now > Timestamp(0));
    }

    // A test in which everything is refused proves nothing.
    assert!(accepted > 1_500 && refused > 300, "{accepted} accepted, {refused} refused");
    let samples = EventKind::samples();
    let matter =
        |kind: &&EventKind| !matches!(kind, kagzi_model::only_told!() | EventKind::HandlerStarted { .. });
    let all: HashSet<_> = samples.iter().filter(matter).map(|kind| kind.name().to_owned()).collect();
    let missing: Vec<_> = all.difference(&kinds).collect();
    assert_eq!(missing, [""; 0], "all but those of handlers, and those that mean nothing, should come up");
}
