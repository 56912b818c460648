//! What was done with a run and what failed in it, seen from its next generation.

use kagzi_model::{OnFailure, Ordered, Reply, RetryPolicy, Status};

use crate::{Stage, generations::on, replay_law::reopen};

pub async fn what_operators_asked_for_and_who_handled_a_failure_is_known_later(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let mut start = stage.new_run("order-1");
    start.options.on_failure = Some(OnFailure { workflow_type: "clean-up".into(), task_queue: None });
    let run = stage.start_with(start).await;
    stage.ok(stage.fail(&standing.next().await.lease())).await;
    stage.ok(reopen(&stage, run, None, Some("request-1"))).await;

    let lease = standing.next().await.lease();
    stage.ok(stage.record(&lease, "charge", b"paid")).await;
    let lease = on(&stage, &mut standing, &lease, "2").await;
    stage.ok(stage.fail(&lease)).await;

    let handlers = stage.event_names(run).await.into_iter().filter(|name| name == "handler_started").count();
    assert_eq!(handlers, 1, "it had its handler");
    let repeated = stage.ok(reopen(&stage, run, None, Some("request-1"))).await;
    let status = Status::Failed;
    assert_eq!(repeated, Reply::Ordered(Ordered { status, already: true }), "carried out before");
}

pub async fn failures_of_a_generation_are_not_counted_in_the_next(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let mut start = stage.new_run("order-1");
    start.options.run_retry = Some(RetryPolicy::default());
    let run = stage.start_with(start).await;
    stage.ok(stage.fail(&standing.next().await.lease())).await;
    stage.pass_ms(3_600_000);
    stage.settle().await;
    let lease = standing.next().await.lease();
    assert_eq!(stage.run(run).await.attempts, 1);

    stage.ok(stage.record(&lease, "charge", b"paid")).await;
    on(&stage, &mut standing, &lease, "2").await;

    assert_eq!(stage.run(run).await.attempts, 0);
}
