//! Nobody's command stops anybody else's.

use kagzi_model::{
    Command, Failure, LeaseRef, Name, OnFailure, Rejection, Reply, RunId, Started, State, Status, act,
};
use uuid::Uuid;

use crate::{Stage, stage::TYPE};

/// A run that will start `clean-up` when it fails, leased to a worker.
async fn with_handler(stage: &Stage) -> (RunId, LeaseRef) {
    let worker = stage.register_for(&["risky"], 1).await;
    let mut standing = stage.stand_by_as(worker, &["risky"]).await;
    let mut start = stage.new_run("risky-1");
    start.workflow_type = "risky".into();
    start.options.on_failure = Some(OnFailure { workflow_type: "clean-up".into(), task_queue: None });
    let run = stage.start_with(start).await;
    let lease = standing.next().await.lease();
    (run, lease)
}

/// The handler started, once, and everybody else goes on.
async fn handled_and_alive(stage: &Stage, run: RunId) {
    let worker = stage.register_for(&["clean-up"], 10).await;
    let mut cleaner = stage.stand_by_as(worker, &["clean-up"]).await;
    let mut neighbour = stage.stand_by(1).await;
    assert_eq!(cleaner.next().await.run.options.handler_of, Some(run));
    assert!(cleaner.ready().is_none(), "one handler and no more");
    let started = stage.start("a-neighbour").await;
    assert_eq!(neighbour.next().await.run.id, started);
}

pub async fn a_handler_starts_although_an_ended_run_has_its_id(stage: Stage) {
    let (run, lease) = with_handler(&stage).await;
    let mut greeter = stage.stand_by(1).await;
    stage.start(&format!("failure-{run}")).await;
    stage.ok(stage.complete(&greeter.next().await.lease())).await;
    drop(greeter);

    stage.ok(stage.fail(&lease)).await;

    assert_eq!(stage.run(run).await.state.status(), Status::Failed);
    handled_and_alive(&stage, run).await;
}

pub async fn a_handler_starts_although_a_living_run_has_its_id(stage: Stage) {
    let (run, lease) = with_handler(&stage).await;
    let taken = stage.start(&format!("failure-{run}")).await;

    stage.ok(stage.fail(&lease)).await;
    stage.ok(stage.cancel(taken)).await;

    handled_and_alive(&stage, run).await;
}

pub async fn a_deadline_starts_its_handler_although_the_id_is_taken(stage: Stage) {
    let mut start = stage.new_run("late");
    start.options.on_failure = Some(OnFailure { workflow_type: "clean-up".into(), task_queue: None });
    start.deadline_at = Some(stage.now().plus_ms(1_000));
    let run = stage.start_with(start).await;
    let taken = stage.start(&format!("failure-{run}")).await;
    stage.ok(stage.cancel(taken)).await;

    stage.pass_ms(1_000);
    stage.sweep_expired().await;

    assert_eq!(stage.run(run).await.state.status(), Status::TimedOut);
    handled_and_alive(&stage, run).await;
}

/// A start under a run id that exists: our own mistake, should it ever happen, and nothing that the fold can
/// see.
fn impossible(stage: &Stage, taken: RunId, business_id: &str) -> Command {
    let mut start = stage.new_run(business_id);
    start.id = taken;
    Command::start(start)
}

pub async fn one_command_that_cannot_be_stored_is_refused_and_its_neighbours_are_not(stage: Stage) {
    let taken = stage.start("first").await;
    let good = |id: &str| Command::start(stage.new_run(id));

    let outcomes =
        stage.apply_all(vec![good("before"), impossible(&stage, taken, "culprit"), good("after")]).await;

    assert!(matches!(outcomes[0], Ok(Reply::Started(Started { existed: false, .. }))), "{outcomes:?}");
    assert!(matches!(&outcomes[1], Err(Rejection::NotStorable { why }) if !why.is_empty()), "{outcomes:?}");
    assert!(matches!(outcomes[2], Ok(Reply::Started(Started { existed: false, .. }))), "{outcomes:?}");
}

pub async fn calls_that_share_a_batch_with_a_culprit_are_answered(stage: Stage) {
    let taken = stage.start("first").await;
    let mut neighbour = stage.stand_by(100).await;
    let first = neighbour.next().await;
    let calls = (0..50).map(|n| {
        let command = match n % 10 {
            0 => impossible(&stage, taken, &format!("culprit-{n}")),
            _ => Command::start(stage.new_run(&format!("neighbour-{n}"))),
        };
        stage.apply(command)
    });

    let outcomes = futures_util::future::join_all(calls).await;

    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 45);
    // And they are given to workers as if nothing had happened.
    for _ in 0..45 {
        neighbour.next().await;
    }
    stage.ok(stage.complete(&first.lease())).await;
}

pub async fn a_run_of_another_type_waits_only_for_those_that_were_due_before_it(stage: Stage) {
    let worker = stage.register_for(&["a", "b"], 1).await;
    let mut standing = stage.stand_by_as(worker, &["a", "b"]).await;
    let start = async |kind: &str, n: usize| {
        let mut start = stage.new_run(&format!("{kind}-{n}"));
        start.workflow_type = kind.into();
        stage.pass_one_tick();
        stage.start_with(start).await
    };
    for n in 0..30 {
        start("a", n).await;
    }
    let wanted = start("b", 0).await;

    let mut served = 0;
    loop {
        let next = standing.next().await;
        if next.run.id == wanted {
            break;
        }
        served += 1;
        assert!(served <= 30, "only those that were due before it come first");
        // The other type is refilled for as long as it drains.
        start("a", 30 + served).await;
        stage.ok(stage.complete(&next.lease())).await;
    }

    assert_eq!(served, 30, "and those that were due before it do come first");
}

pub async fn queues_behind_one_limit_are_served_in_the_order_they_came(stage: Stage) {
    let (first, second) = (Name::from("a-queue"), Name::from("b-queue"));
    let stand_by = async |queue: &Name| {
        let id = kagzi_model::WorkerId(Uuid::now_v7());
        let registration =
            kagzi_model::Registration { task_queue: queue.clone(), ..stage.registration(&[TYPE], 10) };
        stage.worker(kagzi_store::Register { id, registration }).await.unwrap();
        stage.stand_by_as(id, &[TYPE]).await
    };
    let (mut a, mut b) = (stand_by(&first).await, stand_by(&second).await);
    let limit = kagzi_model::GateCommand::Limit { max_concurrent: Some(1) };
    stage.gate(kagzi_model::GateKey::namespace(&stage.namespace), limit).await;
    let start = async |queue: &Name, n: usize| {
        let mut start = stage.new_run(&format!("{queue}-{n}"));
        start.task_queue = queue.clone();
        stage.pass_one_tick();
        stage.start_with(start).await
    };
    for n in 0..10 {
        start(&first, n).await;
    }
    let wanted = start(&second, 0).await;

    for served in 0..10 {
        let next = a.next().await;
        start(&first, 10 + served).await;
        stage.ok(stage.complete(&next.lease())).await;
    }

    assert_eq!(b.next().await.run.id, wanted);
    assert!(a.ready().is_none(), "the limit is one");
}

pub async fn a_failure_with_every_kind_of_text_is_stored_and_read_back(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("texts").await;
    let lease = standing.next().await.lease();
    let text = "\u{0}\u{1b}[2J \u{202e} \u{1f980} \u{d7ff}\u{e000} \"quoted\" \\";

    stage.ok(lease.report(act::Fail { step: None, failure: Failure::new("ODD", text) })).await;

    let State::Failed { failure } = stage.run(run).await.state else { panic!("the run failed") };
    assert!(failure.message.contains('\u{1f980}') && failure.message.contains("\"quoted\" \\"));
}
