//! One run per business id, whoever asks and however often.

use std::collections::HashSet;

use futures_util::future::join_all;
use kagzi_model::{Command, IdReuse, Name, Payload, Rejection, Reply, RunOptions, StartRun, Started, Status};

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
    let unnamed = || StartRun { business_id: None, ..stage.new_run("") };

    let (first, second) = (unnamed(), unnamed());
    let ids = (stage.start_with(first.clone()).await, stage.start_with(second).await);

    assert_ne!(ids.0, ids.1);
    assert_eq!(stage.run(ids.0).await.business_id, None);
    assert_eq!(stage.run(ids.0).await.shown_id(), ids.0.to_string());
}

/// Without a business id nobody looks whether the run exists, which saves a read per start. The same start
/// sent again meets the database's uniqueness, and only then it is looked for.
pub async fn a_start_without_a_business_id_can_be_sent_again_and_makes_one_run(stage: Stage) {
    let start = StartRun { business_id: None, ..stage.new_run("") };
    let run = stage.start_with(start.clone()).await;
    let neighbour = stage.new_run("order-1");
    let neighbour_id = neighbour.id;

    let commands = vec![Command::start(neighbour), Command::start(start)];
    let answer = stage.apply_all(commands).await;

    assert_eq!(answer[0], Ok(Reply::Started(Started { run: neighbour_id, existed: false })));
    assert_eq!(answer[1], Ok(Reply::Started(Started { run, existed: true })));
    assert_eq!(stage.event_names(run).await, ["run_started"], "nothing is written twice");
}

/// A start under the id with this policy, as a caller would send it: each has a run id of its own.
fn with(stage: &Stage, business_id: &str, reuse: IdReuse, request: Option<&str>) -> Command {
    let start = stage.new_run(business_id);
    let request = request.map(Name::from);
    let options = RunOptions { reuse, request, ..start.options.clone() };
    Command::start(StartRun { options, ..start })
}

fn made(reply: Reply) -> kagzi_model::RunId {
    match reply {
        Reply::Started(Started { run, existed: false }) => run,
        other => panic!("no new run: {other:?}"),
    }
}

pub async fn a_start_that_rejects_a_taken_id_is_refused_but_for_its_own_repeat(stage: Stage) {
    let run = made(stage.ok(with(&stage, "order-1", IdReuse::Reject, Some("r1"))).await);

    let repeated = stage.ok(with(&stage, "order-1", IdReuse::Reject, Some("r1"))).await;
    let another = stage.apply(with(&stage, "order-1", IdReuse::Reject, Some("r2"))).await;
    let nameless = stage.apply(with(&stage, "order-1", IdReuse::Reject, None)).await;

    assert_eq!(repeated, Reply::Started(Started { run, existed: true }));
    let refused = Rejection::Taken { business_id: "order-1".into(), run, status: Status::Pending };
    assert_eq!(another, Err(refused.clone()));
    assert_eq!(nameless, Err(refused));
}

pub async fn a_new_run_takes_the_id_of_one_that_failed_and_of_none_that_lives_or_completed(stage: Stage) {
    let again = || with(&stage, "order-1", IdReuse::AfterFailure, None);
    let first = made(stage.ok(again()).await);

    assert_eq!(stage.ok(again()).await, Reply::Started(Started { run: first, existed: true }), "it lives");
    stage.ok(stage.cancel(first)).await;
    let second = made(stage.ok(again()).await);
    let assigned = stage.stand_by(1).await.next().await.run;
    assert_eq!(assigned.id, second);
    let lease =
        kagzi_model::LeaseRef { namespace: stage.namespace.clone(), run: second, epoch: assigned.epoch };
    stage.ok(stage.complete(&lease)).await;

    assert_eq!(
        stage.ok(again()).await,
        Reply::Started(Started { run: second, existed: true }),
        "it completed"
    );
}

pub async fn a_new_run_takes_the_id_of_one_that_ended_and_the_former_is_known_by_its_run_id(stage: Stage) {
    let first = stage.start("order-1").await;
    stage.ok(stage.cancel(first)).await;

    let second = made(stage.ok(with(&stage, "order-1", IdReuse::AfterEnd, Some("r1"))).await);
    let repeated = stage.ok(with(&stage, "order-1", IdReuse::AfterEnd, Some("r1"))).await;

    assert_eq!(repeated, Reply::Started(Started { run: second, existed: true }));
    let named = stage.store.run_by_business(&stage.namespace, &"order-1".into()).await.unwrap();
    assert_eq!(named, Some(second));
    assert_eq!(stage.run(second).await.business_id.as_deref(), Some("order-1"));
    assert_eq!(stage.run(first).await.business_id, None);
    assert_eq!(stage.event_names(first).await, ["run_started", "run_cancelled"]);
}

pub async fn an_id_that_was_taken_over_can_be_taken_over_again_in_one_batch(stage: Stage) {
    let first = stage.start("order-1").await;
    let again = || with(&stage, "order-1", IdReuse::AfterEnd, None);
    let second = again();
    let second_id = second.run.id;
    let batch = vec![stage.cancel(first), second, stage.cancel(second_id), again()];

    let outcomes = stage.apply_all(batch).await;

    assert_eq!(outcomes[1], Ok(Reply::Started(Started { run: second_id, existed: false })));
    let third = made(outcomes[3].clone().unwrap());
    let named = stage.store.run_by_business(&stage.namespace, &"order-1".into()).await.unwrap();
    assert_eq!(named, Some(third));
    for former in [first, second_id] {
        assert_eq!(stage.run(former).await.business_id, None);
    }
}

pub async fn a_run_that_is_to_start_later_is_given_to_nobody_before(stage: Stage) {
    let at = stage.now().plus_ms(60_000);
    let start = stage.new_run("order-1");
    let options = RunOptions { start_at: Some(at), ..start.options.clone() };
    let run = stage.start_with(StartRun { options, ..start }).await;
    let mut worker = stage.stand_by(1).await;

    stage.pass_until_just_before(at);
    stage.settle().await;
    assert!(worker.ready().is_none(), "it is not due");
    assert_eq!(stage.run(run).await.due_at(), Some(at));
    stage.pass_one_tick();

    assert_eq!(worker.next().await.run.id, run);
}
