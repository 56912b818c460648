//! Due runs go to workers that stand by: at once, in order, never too many.

use std::collections::HashSet;

use kagzi_model::{Command, Name, State, WorkerId};
use kagzi_store::{LaneStats, RegistryError};
use uuid::Uuid;

use crate::{Stage, TYPE};

pub async fn a_standing_worker_gets_a_new_run_in_the_same_commit(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    stage.settle().await;
    let commits = LaneStats::get(&stage.store.stats().commits);

    let run = stage.start("order-1").await;

    // The start was answered after the commit, so what is stored now was stored with it.
    assert_eq!(stage.event_names(run).await, ["run_started", "run_claimed"]);
    assert_eq!(LaneStats::get(&stage.store.stats().commits), commits + 1);
    let assignment = standing.next().await;
    assert_eq!((assignment.run.id, assignment.run.epoch, assignment.fresh), (run, 1, true));
    assert_eq!(assignment.input.unwrap().data, "input of order-1");
}

pub async fn the_end_of_one_run_and_the_claim_of_the_next_share_a_commit(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    stage.start("order-1").await;
    let second = stage.start("order-2").await;
    let first = standing.next().await;

    stage.ok(stage.complete(&first.lease())).await;

    assert!(matches!(stage.run(second).await.state, State::Leased(_)));
    assert_eq!(standing.next().await.run.id, second);
}

/// With fewer claims than ends, slots would stand empty while runs wait.
pub async fn as_many_runs_are_claimed_as_leases_end_in_the_same_commit(stage: Stage) {
    const SLOTS: u32 = 60;
    let mut standing = stage.stand_by(SLOTS).await;
    let start = |number: u32| Command::start(stage.new_run(&format!("order-{number}")));
    stage.apply_all((0..2 * SLOTS).map(start).collect()).await;
    let mut first = Vec::new();
    for _ in 0..SLOTS {
        first.push(standing.next().await.lease());
    }
    stage.settle().await;
    let commits = LaneStats::get(&stage.store.stats().commits);

    stage.apply_all(first.iter().map(|lease| stage.complete(lease)).collect()).await;

    // Answered after its commit, which is the only one so far.
    assert_eq!(stage.leased().await, u64::from(SLOTS));
    assert_eq!(LaneStats::get(&stage.store.stats().commits), commits + 1);
}

pub async fn waiting_runs_are_given_out_in_the_order_they_came(stage: Stage) {
    let mut expected = Vec::new();
    for number in 0..5 {
        expected.push(stage.start(&format!("order-{number}")).await);
        stage.pass_ms(1);
    }

    let mut standing = stage.stand_by(10).await;

    for run in expected {
        assert_eq!(standing.next().await.run.id, run);
    }
}

pub async fn one_slot_serves_a_queue_first_in_first_out(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let mut expected = Vec::new();
    for number in 0..10 {
        expected.push(stage.start(&format!("order-{number}")).await);
        stage.pass_ms(1);
    }

    for run in expected {
        let assignment = standing.next().await;
        assert_eq!(assignment.run.id, run);
        stage.ok(stage.complete(&assignment.lease())).await;
    }
}

pub async fn a_type_that_nobody_registers_does_not_block_the_others(stage: Stage) {
    for number in 0..5 {
        let mut start = stage.new_run(&format!("forgotten-{number}"));
        start.workflow_type = "forgotten".into();
        stage.start_with(start).await;
    }
    let run = stage.start("order-1").await;

    let mut standing = stage.stand_by(1).await;

    assert_eq!(standing.next().await.run.id, run);
}

pub async fn a_worker_gets_only_the_types_and_queue_it_registered(stage: Stage) {
    let mut standing = stage.stand_by(10).await;
    let mut other_queue = stage.new_run("order-1");
    other_queue.task_queue = "slow".into();
    let other_queue = stage.start_with(other_queue).await;
    let mut other_type = stage.new_run("order-2");
    other_type.workflow_type = "refund".into();
    let other_type = stage.start_with(other_type).await;

    stage.settle().await;

    assert!(standing.ready().is_none());
    assert_eq!(stage.event_names(other_queue).await, ["run_started"]);
    assert_eq!(stage.event_names(other_type).await, ["run_started"]);
}

pub async fn a_worker_never_holds_more_than_max_concurrent(stage: Stage) {
    let mut standing = stage.stand_by(3).await;
    for number in 0..20 {
        stage.start(&format!("order-{number}")).await;
        assert!(stage.active(standing.worker).await <= 3);
    }

    let mut finished = HashSet::new();
    while finished.len() < 20 {
        let assignment = standing.next().await;
        assert!(stage.active(standing.worker).await <= 3);
        stage.ok(stage.complete(&assignment.lease())).await;
        finished.insert(assignment.run.id);
    }

    assert_eq!(stage.active(standing.worker).await, 0);
}

pub async fn two_demands_of_one_worker_share_its_slots(stage: Stage) {
    let worker = stage.register(2).await;
    let mut demands = [stage.stand_by_as(worker, &[TYPE]).await, stage.stand_by_as(worker, &[TYPE]).await];
    for number in 0..6 {
        stage.start(&format!("order-{number}")).await;
    }
    stage.settle().await;

    let mut finished = 0;
    while finished < 6 {
        assert_eq!(stage.active(worker).await, 2.min(6 - finished));
        let given: Vec<_> = demands.iter_mut().filter_map(|demand| demand.ready()).collect();
        assert!(!given.is_empty(), "{finished} of 6 finished, the rest is stranded");
        for assignment in given {
            stage.ok(stage.complete(&assignment.lease())).await;
            finished += 1;
        }
        stage.settle().await;
    }
}

pub async fn work_goes_to_whoever_has_room(stage: Stage) {
    let mut full = stage.stand_by(1).await;
    stage.start("order-1").await;
    full.next().await;
    let mut free = stage.stand_by(1).await;

    let run = stage.start("order-2").await;

    assert_eq!(free.next().await.run.id, run);
}

pub async fn a_closed_receiver_gives_its_runs_back_without_counting_as_an_attempt(stage: Stage) {
    let gone = stage.stand_by(3).await;
    let gone_worker = gone.worker;
    drop(gone);
    let mut runs = HashSet::new();
    let starts: Vec<_> = (0..3).map(|number| stage.new_run(&format!("order-{number}"))).collect();
    runs.extend(starts.iter().map(|start| start.id));

    // In one call, so that one turn leases all three to the worker that has left.
    let commands = starts.into_iter().map(Command::start).collect();
    stage.apply_all(commands).await;
    let mut standing = stage.stand_by(10).await;

    for _ in 0..3 {
        let assignment = standing.next().await;
        assert!(runs.remove(&assignment.run.id), "given out twice");
        assert_eq!((assignment.run.attempts, assignment.run.crashes), (0, 0));
    }
    assert_eq!(stage.active(gone_worker).await, 0);
}

pub async fn a_withdrawn_demand_gets_nothing_more_and_keeps_what_it_has(stage: Stage) {
    let mut standing = stage.stand_by(10).await;
    let kept = stage.start("order-1").await;
    let assignment = standing.next().await;

    stage.store.withdraw(standing.demand).await.unwrap();
    let later = stage.start("order-2").await;
    stage.settle().await;

    assert!(standing.ready().is_none());
    assert!(matches!(stage.run(later).await.state, State::Ready { .. }));
    assert!(matches!(stage.run(kept).await.state, State::Leased(_)));
    stage.ok(stage.complete(&assignment.lease())).await;
}

pub async fn a_demand_is_refused_for_an_unknown_worker_or_type(stage: Stage) {
    let worker = stage.register(1).await;
    let stranger = WorkerId(Uuid::now_v7());

    let unknown = stage.demand(stranger, &[TYPE], false).await.err();
    let other_type = stage.demand(worker, &[TYPE, "refund"], false).await.err();

    assert_eq!(unknown, Some(RegistryError::Unknown(stranger)));
    assert_eq!(other_type, Some(RegistryError::UnknownType { worker, name: Name::from("refund") }));
}
