//! One run per business id, whoever asks and however often.

use std::collections::HashSet;

use futures_util::future::join_all;
use kagzi_model::{Command, Payload, Rejection, Reply, StartRun, Started};

use crate::Stage;

pub async fn a_start_is_idempotent_by_business_id(stage: Stage) {
    let first = stage.new_run("order-1");
    let again = StartRun { id: stage.new_run("order-1").id, ..first.clone() };
    let run = stage.start_with(first).await;

    let reply = stage.ok(Command::start(again)).await;

    assert_eq!(reply, Reply::Started(Started { run, existed: true }));
    assert_eq!(stage.event_names(run).await, ["run_started"]);
}

pub async fn a_start_is_still_idempotent_after_the_run_ended(stage: Stage) {
    let first = stage.new_run("order-1");
    let run = stage.start_with(first.clone()).await;
    stage.ok(stage.cancel(run)).await;

    let reply = stage.ok(Command::start(first)).await;

    assert_eq!(reply, Reply::Started(Started { run, existed: true }));
}

pub async fn a_conflicting_start_says_what_differs(stage: Stage) {
    let first = stage.new_run("order-1");
    let run = stage.start_with(first.clone()).await;
    type Difference = (&'static str, fn(&mut StartRun));
    let differing: [Difference; 4] = [
        ("workflow type", |start| start.workflow_type = "refund".into()),
        ("task queue", |start| start.task_queue = "slow".into()),
        ("input", |start| start.input = Payload::new(&b"something else"[..])),
        ("input", |start| start.input.content_type = "text/plain".into()),
    ];

    for (what, change) in differing {
        let mut other = StartRun { id: stage.new_run("order-1").id, ..first.clone() };
        change(&mut other);
        let outcome = stage.apply(Command::start(other)).await;

        let business_id = "order-1".into();
        assert_eq!(outcome, Err(Rejection::Conflict { business_id, run, what }));
    }
    assert_eq!(stage.event_names(run).await, ["run_started"]);
}

pub async fn a_hundred_concurrent_starts_with_one_id_make_one_run(stage: Stage) {
    let first = stage.new_run("order-1");
    let starts = (0..100).map(|_| {
        let start = StartRun { id: stage.new_run("order-1").id, ..first.clone() };
        stage.apply(Command::start(start))
    });

    let replies = join_all(starts).await;

    let mut runs = HashSet::new();
    let mut created = 0;
    for reply in replies {
        let Ok(Reply::Started(Started { run, existed })) = reply else { panic!("{reply:?}") };
        runs.insert(run);
        created += usize::from(!existed);
    }
    assert_eq!((runs.len(), created), (1, 1));
}

pub async fn two_starts_in_one_call_with_one_id_make_one_run(stage: Stage) {
    let first = stage.new_run("order-1");
    let second = StartRun { id: stage.new_run("order-1").id, ..first.clone() };
    let run = first.id;

    let outcomes = stage.apply_all(vec![Command::start(first), Command::start(second)]).await;

    let started = |existed| Ok(Reply::Started(Started { run, existed }));
    assert_eq!(outcomes, [started(false), started(true)]);
}

/// The caller chose no business id, so the run's id stands in for it.
pub async fn runs_without_a_business_id_are_all_different(stage: Stage) {
    let unnamed = || {
        let start = stage.new_run("");
        StartRun { business_id: start.id.to_string().into(), ..start }
    };

    let (first, second) = (unnamed(), unnamed());
    let ids = (stage.start_with(first.clone()).await, stage.start_with(second).await);

    assert_ne!(ids.0, ids.1);
    assert_eq!(stage.run(ids.0).await.business_id, first.business_id);
}

/// Without a business id nobody looks whether the run exists, which saves a read per start. The same start
/// sent again meets the database's uniqueness, and only then it is looked for.
pub async fn a_start_without_a_business_id_can_be_sent_again_and_makes_one_run(stage: Stage) {
    let start = stage.new_run("");
    let start = StartRun { business_id: start.id.to_string().into(), ..start };
    let run = stage.start_with(start.clone()).await;
    let neighbour = stage.new_run("order-1");
    let neighbour_id = neighbour.id;

    let commands = vec![Command::start(neighbour), Command::start(start)];
    let answer = stage.apply_all(commands).await;

    assert_eq!(answer[0], Ok(Reply::Started(Started { run: neighbour_id, existed: false })));
    assert_eq!(answer[1], Ok(Reply::Started(Started { run, existed: true })));
    assert_eq!(stage.event_names(run).await, ["run_started"], "nothing is written twice");
}
