//! Generations outlive a restart: what memory knew of a run that continued is read from its living part.

use kagzi_model::{Done, Reply, State, act};

use crate::{
    Stage,
    children::{began, child},
    generations::{continued, journal_of},
    signals::{TOLD_BEFORE, signal, wait},
};

pub async fn a_run_goes_on_in_its_generation_after_a_restart(mut stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let mut lease = standing.next().await.lease();
    stage.ok(signal(&stage, run, "item", "tea")).await;
    stage.ok(signal(&stage, run, "item", "milk")).await;
    stage.ok(wait(&lease, "took", "item", None)).await;
    for generation in 2..6 {
        stage.ok(continued(&lease, &generation.to_string())).await;
        lease = standing.next().await.lease();
        stage.ok(stage.record(&lease, "charge", b"paid")).await;
    }

    stage.reopen().await;

    let lease = stage.beat(standing.worker, vec![lease.clone()]).await.map(|_| lease).unwrap();
    assert_eq!(stage.ok(signal(&stage, run, "item", "tea")).await, TOLD_BEFORE);
    stage.ok(wait(&lease, "own", "item", None)).await;
    let again = stage.ok(stage.record(&lease, "charge", b"twice")).await;
    assert_eq!(again, Reply::Done(Done::BEFORE), "the record of this generation is known");
    let journal = journal_of(&stage, run).await;
    assert_eq!((journal.input().data, journal.entries().len()), ("5".into(), 2));
    stage.ok(stage.complete(&lease)).await;
    assert_eq!(stage.run(run).await.generation, 5);
}

pub async fn a_repeat_of_a_continue_is_recognised_after_a_restart(mut stage: Stage) {
    let standing = stage.register(1).await;
    let mut once = stage.poll(standing).await;
    let run = stage.start("order-1").await;
    let lease = once.next().await.lease();
    stage.ok(continued(&lease, "2")).await;
    let before = stage.events(run).await;

    stage.reopen().await;
    let again = stage.ok(continued(&lease, "2")).await;

    assert_eq!(again, Reply::Done(Done::BEFORE));
    assert_eq!(stage.events(run).await, before);
    assert_eq!(stage.run(run).await.generation, 2);
}

pub async fn a_run_knows_the_children_of_earlier_generations_after_a_restart(mut stage: Stage) {
    let mut standing = stage.stand_by(2).await;
    let parent = stage.start("order-1").await;
    let mut lease = standing.next().await.lease();
    let start = act::StartChild { awaited: false, ..child(&stage, &lease, "ship") };
    let ship = began(&stage, &lease, start).await;
    standing.next().await;
    for generation in 2..5 {
        stage.ok(continued(&lease, &generation.to_string())).await;
        lease = standing.next().await.lease();
    }

    stage.reopen().await;
    stage.ok(stage.cancel(parent)).await;
    for _ in 0..5 {
        stage.sweep_expired().await;
    }

    let state = stage.run(ship).await.state;
    assert!(matches!(state, State::Cancelled { .. }), "{state:?}");
}
