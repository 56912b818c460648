//! A signal that comes in the very commit in which its run parks, ends, or goes to another worker has one
//! outcome, whichever of the two is first; its sender is told that outcome, and it is true.

use kagzi_model::{Command, EventKind, LeaseRef, Payload, Rejection, Reply, RunId, Waited};
use kagzi_store::Outcome;

use crate::{
    Stage,
    replay_law::park,
    signals::{TOLD, signal, wait},
    stage::Standing,
};

/// A run whose wait is open and that a worker executes.
async fn waiting(stage: &Stage, standing: &mut Standing, id: &str) -> (RunId, LeaseRef) {
    let run = stage.start(id).await;
    let lease = standing.next().await.lease();
    stage.ok(wait(&lease, "ok", "approved", None)).await;
    (run, lease)
}

/// Both in one commit. Answers with what the signal's sender is told, and what the other one is.
async fn together(
    stage: &Stage,
    signalled_first: bool,
    signal: Command,
    other: Command,
) -> (Outcome, Outcome) {
    let both = if signalled_first { vec![signal, other] } else { vec![other, signal] };
    let mut outcomes = stage.apply_all(both).await;
    let (last, first) = (outcomes.pop().unwrap(), outcomes.pop().unwrap());
    if signalled_first { (first, last) } else { (last, first) }
}

/// How often the signal was written down, and how often a wait took it.
async fn counted(stage: &Stage, run: RunId) -> (usize, usize) {
    let events = stage.events(run).await;
    let ended = |kind: &EventKind| matches!(kind, EventKind::WaitEnded { .. });
    let own = |kind: &EventKind| {
        matches!(kind, EventKind::SignalReceived { .. } | EventKind::WaitEnded { received: None, .. })
    };
    let count = |of: &dyn Fn(&EventKind) -> bool| events.iter().filter(|event| of(&event.kind)).count();
    (count(&own), count(&ended))
}

pub async fn a_signal_in_the_commit_of_a_park_is_told_and_taken_once(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    for signalled_first in [true, false] {
        let (run, lease) = waiting(&stage, &mut standing, &format!("order-{signalled_first}")).await;

        let told =
            together(&stage, signalled_first, signal(&stage, run, "approved", "ada"), park(&lease, &["ok"]))
                .await;

        assert_eq!(told.0, Ok(TOLD));
        assert!(told.1.is_ok(), "{told:?}");
        let lease = standing.next().await.lease();
        assert_eq!((lease.run, counted(&stage, run).await), (run, (1, 1)));
        stage.ok(stage.complete(&lease)).await;
    }
}

pub async fn a_signal_in_the_commit_of_the_end_is_told_and_kept_or_refused(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    for signalled_first in [true, false] {
        let (run, lease) = waiting(&stage, &mut standing, &format!("order-{signalled_first}")).await;

        let told =
            together(&stage, signalled_first, signal(&stage, run, "approved", "ada"), stage.complete(&lease))
                .await;

        assert!(told.1.is_ok(), "{told:?}");
        match signalled_first {
            true => assert_eq!(told.0, Ok(TOLD), "it came before the end, and nobody took it"),
            false => assert!(matches!(told.0, Err(Rejection::Ended { .. })), "{told:?}"),
        }
        assert_eq!(counted(&stage, run).await, (usize::from(signalled_first), 0));
    }
}

pub async fn a_signal_in_the_commit_of_a_takeover_is_taken_by_the_heir_alone(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    for signalled_first in [true, false] {
        let (run, lease) = waiting(&stage, &mut standing, &format!("order-{signalled_first}")).await;

        let told =
            together(&stage, signalled_first, signal(&stage, run, "approved", "ada"), stage.release(&lease))
                .await;

        assert_eq!(told.0, Ok(TOLD));
        assert!(told.1.is_ok(), "{told:?}");
        let heir = standing.next().await.lease();
        let late = stage.apply(wait(&lease, "ok", "approved", None)).await;
        assert!(matches!(late, Err(Rejection::StaleEpoch { .. })), "the former worker asks: {late:?}");
        let asked = stage.ok(wait(&heir, "ok", "approved", None)).await;
        assert!(matches!(asked, Reply::Waited(Waited::Taken { .. })), "{asked:?}");
        assert_eq!(counted(&stage, run).await, (1, 1));
        stage.ok(stage.complete(&heir)).await;
    }
}

pub async fn a_signal_in_the_commit_of_the_question_is_taken_now_or_hinted(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    for signalled_first in [true, false] {
        let (run, lease) = waiting(&stage, &mut standing, &format!("order-{signalled_first}")).await;

        let (told, asked) = together(
            &stage,
            signalled_first,
            signal(&stage, run, "approved", "ada"),
            wait(&lease, "ok", "approved", None),
        )
        .await;

        assert_eq!(told, Ok(TOLD));
        let taken = matches!(asked, Ok(Reply::Waited(Waited::Taken { .. })));
        assert_eq!(taken, signalled_first, "{asked:?}");
        if !taken {
            stage.told.signalled(run).await;
            stage.ok(wait(&lease, "ok", "approved", None)).await;
        }
        assert_eq!(counted(&stage, run).await, (1, 1));
        let output = Payload::new(&b"1"[..]);
        stage.ok(lease.report(kagzi_model::act::Complete { output, steps: Vec::new() })).await;
    }
}

/// The time of the wait is over at this very moment, and nobody has said so yet.
pub async fn a_signal_in_the_commit_of_the_timeout_is_taken_or_lies_there(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    for signalled_first in [true, false] {
        let run = stage.start(&format!("order-{signalled_first}")).await;
        let lease = standing.next().await.lease();
        stage.ok(wait(&lease, "ok", "approved", Some(60_000))).await;
        stage.pass_ms(60_000);

        let (told, asked) = together(
            &stage,
            signalled_first,
            signal(&stage, run, "approved", "ada"),
            wait(&lease, "ok", "approved", Some(60_000)),
        )
        .await;

        assert_eq!(told, Ok(TOLD), "it is kept in any case");
        let Ok(Reply::Waited(outcome)) = asked else { panic!("{asked:?}") };
        match signalled_first {
            true => assert!(matches!(outcome, Waited::Taken { .. }), "{outcome:?}"),
            false => assert_eq!(outcome, Waited::Elapsed),
        }
        assert_eq!(counted(&stage, run).await, (1, usize::from(signalled_first)));
        let again = stage.ok(wait(&lease, "ok", "approved", Some(60_000))).await;
        assert_eq!(again, Reply::Waited(outcome), "what it came to, it stays");
        if !signalled_first {
            let later = stage.ok(wait(&lease, "later", "approved", None)).await;
            assert!(matches!(later, Reply::Waited(Waited::Taken { .. })), "late, and not lost: {later:?}");
        }
        stage.ok(stage.complete(&lease)).await;
    }
}
