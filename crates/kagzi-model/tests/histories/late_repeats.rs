//! Commands that come again late, after the run went on.

use kagzi_model::{
    Attempted, Command, Done, Failure, LeaseRef, Payload, Reply, RetryPolicy, StepRef, StepResult, act,
};

use crate::play::{Epoch, Move, Play, Setting, What};

fn lease(play: &Play) -> LeaseRef {
    let run = &play.seen.run;
    LeaseRef { namespace: run.namespace.clone(), run: run.id, epoch: run.epoch }
}

fn fail_step(play: &Play, attempt: u32) -> Command {
    lease(play).report(act::FailStep {
        step: StepRef { path: "charge".into(), position: 0 },
        attempt,
        failure: Failure::new("BROKEN", "it broke"),
        policy: RetryPolicy { initial_interval_ms: Some(0), ..Default::default() },
        elapsed_ms: 0,
        park: false,
    })
}

fn leased() -> Play {
    let mut play = Play::begin(Setting::default());
    play.step(&Move::Lease { lease_ms: 30_000 });
    play
}

#[test]
fn a_late_repeat_of_a_result_is_answered_after_the_run_ended() {
    let mut play = leased();
    let step = StepRef { path: "charge".into(), position: 0 };
    let result = Payload::new(&b"r"[..]);
    let record = lease(&play).report(act::RecordStep(StepResult { step, attempt: 1, result, elapsed_ms: 0 }));
    play.send(&record).unwrap();
    play.step(&Move::Write { epoch: Epoch::Current, what: What::Complete });

    let again = play.send(&record).unwrap();

    assert_eq!(again.reply, Reply::Done(Done { already: true }));
    assert!(again.events.is_empty());
}

#[test]
fn a_late_repeat_of_a_failure_is_not_charged_to_the_next_attempt() {
    let mut play = leased();
    let first = fail_step(&play, 1);
    play.send(&first).unwrap();
    play.step(&Move::Write {
        epoch: Epoch::Current,
        what: What::BeginStep { step: 0, moved: false, timeout_ms: None },
    });

    let again = play.send(&first).unwrap();

    assert!(
        matches!(again.reply, Reply::Attempted(Attempted::Retry { attempt: 1, .. })),
        "{:?}",
        again.reply
    );
    assert!(again.events.is_empty());
}

#[test]
fn a_failure_that_counts_ahead_of_the_record_is_not_recognised_when_it_comes_again() {
    let mut play = leased();
    let ahead = fail_step(&play, 3);
    play.send(&ahead).unwrap();

    let again = play.send(&ahead).unwrap();

    // WRONG, today: the worker said "attempt 3", the record said 1, and the repeat became attempt 2. Our own
    // SDK counts from the journal, so it is never ahead; another language's may be.
    assert!(
        matches!(again.reply, Reply::Attempted(Attempted::Retry { attempt: 2, .. })),
        "{:?}",
        again.reply
    );
}
