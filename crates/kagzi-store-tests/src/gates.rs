//! Gates: a paused queue gives out nothing, and limits hold at every commit.

use kagzi_model::{
    Author, Command, GateCommand, GateKey, LeaseRef, Name, RunId, RunKey, StartRun, State, act,
};
use kagzi_store::{Depth, LaneStats, Register};

use crate::{
    Stage, TYPE,
    stage::{LEASE_MS, Standing},
};

fn pause() -> GateCommand {
    GateCommand::Pause { by: "ada".into(), note: "deploy".into() }
}

fn limit(max_concurrent: u32) -> GateCommand {
    GateCommand::Limit { max_concurrent: Some(max_concurrent) }
}

fn of_type(stage: &Stage, business_id: &str, workflow_type: &str) -> StartRun {
    StartRun { workflow_type: workflow_type.into(), ..stage.new_run(business_id) }
}

pub async fn a_paused_queue_gives_out_nothing_and_what_runs_goes_on(stage: Stage) {
    let mut standing = stage.stand_by(10).await;
    stage.start("order-1").await;
    let lease = standing.next().await.lease();

    stage.gate(stage.queue_gate(), pause()).await;
    let waiting = stage.start("order-2").await;
    stage.settle().await;

    assert!(standing.ready().is_none());
    assert!(matches!(stage.run(waiting).await.state, State::Ready { .. }));
    stage.ok(stage.record(&lease, "a", b"1")).await;
    stage.beat(standing.worker, vec![lease.clone()]).await.unwrap();
    stage.ok(stage.complete(&lease)).await;
    stage.settle().await;
    assert!(standing.ready().is_none(), "the end of a run opens no paused queue");
}

pub async fn a_resumed_queue_gives_out_at_once_what_waited(stage: Stage) {
    let mut standing = stage.stand_by(10).await;
    stage.gate(stage.queue_gate(), pause()).await;
    let runs = [stage.start("order-1").await, stage.start("order-2").await];

    stage.gate(stage.queue_gate(), GateCommand::Resume).await;

    // The answer came after the commit, and what waited was claimed in it.
    for run in runs {
        assert_eq!(stage.event_names(run).await, ["run_started", "run_claimed"]);
        assert_eq!(standing.next().await.run.id, run);
    }
}

pub async fn a_paused_type_does_not_hold_up_the_others(stage: Stage) {
    let worker = stage.register_for(&[TYPE, "refund"], 10).await;
    let mut standing = stage.stand_by_as(worker, &[TYPE, "refund"]).await;
    stage.gate(stage.type_gate("refund"), pause()).await;

    let paused = stage.start_with(of_type(&stage, "refund-1", "refund")).await;
    let run = stage.start("order-1").await;
    stage.settle().await;

    assert_eq!(standing.next().await.run.id, run);
    assert!(standing.ready().is_none());
    stage.gate(stage.type_gate("refund"), GateCommand::Resume).await;
    assert_eq!(standing.next().await.run.id, paused);
}

/// Starts and completes runs of two types, and looks after every commit.
async fn never_more_than(stage: &Stage, most: u64) {
    let worker = stage.register_for(&[TYPE, "refund"], 50).await;
    let mut demands = [
        stage.stand_by_as(worker, &[TYPE, "refund"]).await,
        stage.stand_by_as(stage.register_for(&[TYPE, "refund"], 50).await, &[TYPE, "refund"]).await,
    ];
    for number in 0..20 {
        let workflow_type = if number % 3 == 0 { "refund" } else { TYPE };
        stage.start_with(of_type(stage, &format!("order-{number}"), workflow_type)).await;
        assert!(stage.leased().await <= most, "after {number} starts");
    }
    assert_eq!(stage.leased().await, most, "the limit is used");
    stage.settle().await;

    let mut finished = 0;
    while finished < 20 {
        let given: Vec<_> = demands.iter_mut().filter_map(Standing::ready).collect();
        assert!(!given.is_empty(), "{finished} of 20 finished, the rest is stranded");
        for assignment in given {
            stage.ok(stage.complete(&assignment.lease())).await;
            finished += 1;
            assert_eq!(stage.leased().await, most.min(20 - finished), "after {finished} ends");
        }
        stage.settle().await;
    }
}

pub async fn a_queue_limit_holds_at_every_commit(stage: Stage) {
    stage.gate(stage.queue_gate(), limit(3)).await;

    never_more_than(&stage, 3).await;
}

pub async fn a_type_limit_holds_at_every_commit(stage: Stage) {
    stage.gate(stage.type_gate("refund"), limit(1)).await;
    stage.gate(stage.type_gate(TYPE), limit(2)).await;
    let worker = stage.register_for(&[TYPE, "refund"], 50).await;
    let mut standing = stage.stand_by_as(worker, &[TYPE, "refund"]).await;
    for number in 0..12 {
        let workflow_type = if number % 2 == 0 { "refund" } else { TYPE };
        stage.start_with(of_type(&stage, &format!("order-{number}"), workflow_type)).await;
    }

    for _ in 0..12 {
        for Depth { workflow_type, leased, .. } in
            stage.store.depths(&stage.namespace, stage.now()).await.unwrap()
        {
            let most = if *workflow_type == *TYPE { 2 } else { 1 };
            assert!(leased <= most, "{leased} of {workflow_type}");
        }
        stage.ok(stage.complete(&standing.next().await.lease())).await;
    }
}

pub async fn a_namespace_limit_holds_over_all_queues(stage: Stage) {
    stage.gate(GateKey::namespace(&stage.namespace), limit(3)).await;
    let mut standing = stage.stand_by(10).await;
    let mut elsewhere = stage.registration(&[TYPE], 10);
    elsewhere.task_queue = "slow".into();
    let slow = kagzi_model::WorkerId(uuid::Uuid::now_v7());
    stage.worker(Register { id: slow, registration: elsewhere }).await.unwrap();
    let mut slow = stage.stand_by_as(slow, &[TYPE]).await;
    for number in 0..10 {
        let task_queue: Name = if number % 2 == 0 { "slow" } else { "default" }.into();
        stage.start_with(StartRun { task_queue, ..stage.new_run(&format!("order-{number}")) }).await;
        assert!(stage.leased().await <= 3);
    }

    for finished in 1..=10 {
        stage.settle().await;
        let assignment = match standing.ready() {
            Some(assignment) => assignment,
            None => slow.next().await,
        };
        stage.ok(stage.complete(&assignment.lease())).await;
        assert_eq!(stage.leased().await, 3.min(10 - finished));
    }
}

pub async fn the_tightest_of_several_gates_counts(stage: Stage) {
    stage.gate(GateKey::namespace(&stage.namespace), limit(9)).await;
    stage.gate(stage.type_gate(TYPE), limit(5)).await;
    stage.gate(stage.queue_gate(), limit(2)).await;

    never_more_than(&stage, 2).await;
}

pub async fn a_start_is_not_claimed_in_its_commit_when_the_gate_is_full(stage: Stage) {
    let mut standing = stage.stand_by(10).await;
    stage.gate(stage.queue_gate(), limit(2)).await;
    let starts: Vec<_> = (0..5).map(|number| stage.new_run(&format!("order-{number}"))).collect();
    let ids: Vec<RunId> = starts.iter().map(|start| start.id).collect();
    let commits = LaneStats::get(&stage.store.stats().commits);

    stage.apply_all(starts.into_iter().map(Command::start).collect()).await;

    assert_eq!(LaneStats::get(&stage.store.stats().commits), commits + 1);
    assert_eq!(stage.leased().await, 2);
    let mut given = [standing.next().await.run.id, standing.next().await.run.id];
    given.sort();
    assert_eq!(given[..], ids[..2], "first come, first served");
    stage.settle().await;
    assert!(standing.ready().is_none());
}

pub async fn a_slot_is_used_again_in_the_commit_that_frees_it(stage: Stage) {
    stage.gate(stage.queue_gate(), limit(1)).await;
    let mut standing = stage.stand_by(10).await;
    stage.start("order-1").await;
    let second = stage.start("order-2").await;
    let first = standing.next().await.lease();
    stage.settle().await;
    let commits = LaneStats::get(&stage.store.stats().commits);

    stage.ok(stage.complete(&first)).await;

    assert!(matches!(stage.run(second).await.state, State::Leased(_)));
    assert_eq!(LaneStats::get(&stage.store.stats().commits), commits + 1);
    assert_eq!(standing.next().await.run.id, second);
}

pub async fn however_a_lease_ends_its_slot_is_free_again(stage: Stage) {
    stage.gate(stage.queue_gate(), limit(1)).await;
    let mut standing = stage.stand_by(100).await;
    let ends: [fn(&Stage, &LeaseRef) -> Command; 6] = [
        |stage, lease| stage.complete(lease),
        |stage, lease| stage.fail(lease),
        |stage, lease| stage.cancel(lease.run),
        |stage, lease| stage.sleep(lease, "nap", 3_600_000_000),
        |stage, lease| stage.fail_step(lease, "pay", 1),
        |_, lease| {
            RunKey::new(lease.namespace.clone(), lease.run)
                .order(Author::new("tester", "enough"), act::Terminate)
        },
    ];
    for (number, end) in ends.iter().enumerate() {
        let run = stage.start(&format!("order-{number}")).await;
        let next = stage.start(&format!("next-{number}")).await;
        let held = standing.next().await;
        assert_eq!(held.run.id, run);

        stage.ok(end(&stage, &held.lease())).await;

        let following = standing.next().await;
        assert_eq!(following.run.id, next, "after end {number}");
        stage.ok(stage.complete(&following.lease())).await;
    }
    // By time alone, and by the loss of the worker.
    let lost = stage.start("order-lost").await;
    let next = stage.start("next-lost").await;
    assert_eq!(standing.next().await.run.id, lost);
    let mut heir = stage.stand_by(10).await;
    stage.pass_ms(LEASE_MS as u64);
    stage.sweep_expired().await;
    stage.settle().await;
    let following = match standing.ready() {
        Some(following) => following,
        None => heir.next().await,
    };
    assert_eq!(following.run.id, next);
    assert_eq!(stage.leased().await, 1);
}

pub async fn a_raised_limit_gives_out_at_once_and_a_lowered_one_takes_nothing_back(stage: Stage) {
    stage.gate(stage.queue_gate(), limit(1)).await;
    let mut standing = stage.stand_by(10).await;
    for number in 0..6 {
        stage.start(&format!("order-{number}")).await;
    }
    assert_eq!(stage.leased().await, 1);

    stage.gate(stage.queue_gate(), limit(4)).await;
    assert_eq!(stage.leased().await, 4);
    stage.gate(stage.queue_gate(), limit(2)).await;
    stage.settle().await;

    assert_eq!(stage.leased().await, 4);
    for left in [3, 2, 2] {
        stage.ok(stage.complete(&standing.next().await.lease())).await;
        assert_eq!(stage.leased().await, left);
    }
    stage.gate(stage.queue_gate(), GateCommand::Limit { max_concurrent: None }).await;
    assert_eq!(stage.leased().await, 3, "all that is left");
}

pub async fn a_gate_holds_for_workers_that_come_later(stage: Stage) {
    for number in 0..5 {
        stage.start(&format!("order-{number}")).await;
    }
    stage.gate(stage.queue_gate(), limit(2)).await;
    stage.gate(stage.type_gate(TYPE), pause()).await;

    let mut late = stage.stand_by(10).await;
    let poll = stage.register(1).await;
    let mut poll = stage.poll(poll).await;
    stage.settle().await;
    assert!(late.ready().is_none() && poll.ready().is_none());
    stage.gate(stage.type_gate(TYPE), GateCommand::Resume).await;
    stage.settle().await;

    assert_eq!(stage.leased().await, 2);
}

pub async fn a_sleeper_that_is_due_waits_before_a_full_gate(stage: Stage) {
    stage.gate(stage.queue_gate(), limit(1)).await;
    let mut standing = stage.stand_by(10).await;
    let sleeper = stage.start("sleeper").await;
    stage.ok(stage.sleep(&standing.next().await.lease(), "nap", 1_000)).await;
    stage.start("order-1").await;
    let busy = standing.next().await.lease();

    stage.pass_ms(1_000);
    stage.settle().await;
    assert!(standing.ready().is_none(), "due, but the slot is taken");
    stage.ok(stage.complete(&busy)).await;

    assert_eq!(standing.next().await.run.id, sleeper);
}

pub async fn gates_of_one_namespace_hold_up_nothing_in_another(stage: Stage) {
    let elsewhere = Name::from(format!("{}-elsewhere", stage.namespace));
    stage.gate(GateKey::namespace(&elsewhere), pause()).await;
    stage.gate(GateKey::queue(&elsewhere, &"default".into()), limit(1)).await;
    let mut standing = stage.stand_by(10).await;

    let run = stage.start("order-1").await;

    assert_eq!(standing.next().await.run.id, run);
    assert!(stage.store.gates(&stage.namespace).await.unwrap().is_empty());
    assert_eq!(stage.store.gates(&elsewhere).await.unwrap().len(), 2);
}

pub async fn gates_read_back_and_an_open_one_is_gone(stage: Stage) {
    let paused = stage.gate(stage.queue_gate(), pause()).await;
    let limited = stage.gate(stage.type_gate(TYPE), limit(7)).await;
    let wide = stage.gate(GateKey::namespace(&stage.namespace), limit(9)).await;
    assert_eq!(stage.store.gates(&stage.namespace).await.unwrap(), [wide, paused.clone(), limited]);
    assert_eq!(paused.paused.unwrap().since, stage.now());

    stage.gate(stage.queue_gate(), GateCommand::Resume).await;
    stage.gate(stage.type_gate(TYPE), GateCommand::Limit { max_concurrent: None }).await;
    stage.gate(GateKey::namespace(&stage.namespace), GateCommand::Limit { max_concurrent: None }).await;

    assert!(stage.store.gates(&stage.namespace).await.unwrap().is_empty());
}

pub async fn asking_twice_is_asking_once(stage: Stage) {
    let first = stage.gate(stage.queue_gate(), pause()).await;
    stage.pass_ms(5);
    let commits = LaneStats::get(&stage.store.stats().commits);

    let again = stage.gate(stage.queue_gate(), pause()).await;
    let open = stage.gate(stage.type_gate(TYPE), GateCommand::Resume).await;

    assert_eq!(again, first);
    assert!(open.is_open());
    assert_eq!(LaneStats::get(&stage.store.stats().commits), commits, "nothing was written");
}

pub async fn depths_count_what_lives(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    stage.start("leased").await;
    let sleeper = stage.start_with(of_type(&stage, "sleeper", "refund")).await;
    let ready = stage.now();
    stage.start("ready-1").await;
    stage.pass_ms(10);
    stage.start("ready-2").await;
    let refund = stage.register_for(&["refund"], 1).await;
    let mut refund = stage.stand_by_as(refund, &["refund"]).await;
    let nap = refund.next().await;
    assert_eq!(nap.run.id, sleeper);
    stage.ok(stage.sleep(&nap.lease(), "nap", 60_000)).await;
    standing.next().await;

    let depths = stage.store.depths(&stage.namespace, stage.now()).await.unwrap();

    let depth = |workflow_type: &str, counts: (u64, u64, u64), oldest_ready_at| Depth {
        task_queue: "default".into(),
        workflow_type: workflow_type.into(),
        ready: counts.0,
        waiting: counts.1,
        leased: counts.2,
        oldest_ready_at,
    };
    assert_eq!(depths, [depth(TYPE, (2, 0, 1), Some(ready)), depth("refund", (0, 1, 0), None)]);
}
