//! A poll asks for one run, and several polls of one worker stay within its limit.

use kagzi_model::State;

use crate::{Stage, Standing};

pub async fn a_poll_takes_one_run_only(stage: Stage) {
    let worker = stage.register(10).await;
    let first = stage.start("order-1").await;
    let second = stage.start("order-2").await;

    let mut poll = stage.poll(worker).await;
    let given = poll.next().await;
    stage.settle().await;

    assert_eq!(given.run.id, first);
    assert!(poll.let_go(), "a poll that was served is over");
    assert!(matches!(stage.run(second).await.state, State::Ready { .. }));
}

pub async fn a_poll_that_waits_gets_the_next_run(stage: Stage) {
    let worker = stage.register(10).await;
    let mut poll = stage.poll(worker).await;

    let first = stage.start("order-1").await;
    let second = stage.start("order-2").await;

    assert_eq!(poll.next().await.run.id, first);
    assert!(matches!(stage.run(second).await.state, State::Ready { .. }));
}

pub async fn each_of_several_polls_gets_another_run(stage: Stage) {
    let worker = stage.register(10).await;
    let mut polls = [stage.poll(worker).await, stage.poll(worker).await, stage.poll(worker).await];
    for number in 0..3 {
        stage.start(&format!("order-{number}")).await;
    }

    let mut given = Vec::new();
    for poll in &mut polls {
        given.push(poll.next().await.run.id);
    }

    given.sort();
    given.dedup();
    assert_eq!(given.len(), 3);
}

/// Three polls see three places, but the worker has one slot: the second run must wait and not be forgotten.
pub async fn several_polls_never_exceed_max_concurrent_and_strand_nothing(stage: Stage) {
    let worker = stage.register(1).await;
    let mut busy = stage.poll(worker).await;
    stage.start("order-0").await;
    let first = busy.next().await;
    let mut polls = [stage.poll(worker).await, stage.poll(worker).await, stage.poll(worker).await];
    stage.start("order-1").await;
    stage.start("order-2").await;

    stage.ok(stage.complete(&first.lease())).await;

    for finished in 0..2 {
        stage.settle().await;
        assert_eq!(stage.active(worker).await, 1, "{finished} of 2 finished, the rest is stranded");
        let given: Vec<_> = polls.iter_mut().filter_map(Standing::ready).collect();
        assert_eq!(given.len(), 1);
        stage.ok(stage.complete(&given[0].lease())).await;
    }
}
