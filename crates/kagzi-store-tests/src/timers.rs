//! Sleeps and retries end on time: never early, and all of them.

use std::collections::HashSet;

use kagzi_model::{Asleep, Attempted, Command, Failure, Finality, Reply, RetryPolicy, State, act};

use crate::{LEASE_MS, Stage, stage::step};

pub async fn a_failed_step_is_due_exactly_at_its_retry(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;

    for (attempt, delay_ms) in [(1, 1_000), (2, 2_000), (3, 4_000)] {
        let lease = standing.next().await.lease();
        let retry_at = stage.now().plus_ms(delay_ms);
        let reply = stage.ok(stage.fail_step(&lease, "charge", attempt)).await;

        assert_eq!(reply, Reply::Attempted(Attempted::Retry { at: retry_at, attempt }));
        assert_eq!(stage.active(standing.worker).await, 0, "a parked run frees its slot");
        stage.pass_until_just_before(retry_at);
        stage.settle().await;
        assert!(standing.ready().is_none());
        assert_eq!(stage.waits(run).await, ("retry", Some(retry_at)));
        stage.pass_one_tick();
    }
    assert_eq!(standing.next().await.run.epoch, 4);
}

pub async fn a_sleep_ends_exactly_on_time(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let until = stage.now().plus_ms(3_600_000);

    let reply = stage.ok(stage.sleep(&lease, "nap", 3_600_000)).await;

    assert_eq!(reply, Reply::Asleep(Asleep::Until(until)));
    stage.pass_until_just_before(until);
    stage.settle().await;
    assert!(standing.ready().is_none());
    assert_eq!(stage.waits(run).await, ("timer", Some(until)));
    stage.pass_one_tick();
    let woken = standing.next().await;
    assert_eq!((woken.run.id, woken.run.epoch, woken.fresh), (run, 2, false));
}

pub async fn a_final_failure_leaves_the_run_with_its_worker(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();

    let reply = stage
        .ok(lease.report(act::FailStep {
            step: step("charge"),
            attempt: 1,
            failure: Failure::new("DECLINED", "no money").non_retryable(),
            policy: RetryPolicy::default(),
            elapsed_ms: 0,
            park: true,
        }))
        .await;

    assert_eq!(reply, Reply::Attempted(Attempted::Final { attempts: 1, finality: Finality::NonRetryable }));
    assert!(matches!(stage.run(run).await.state, State::Leased(_)));
    stage.ok(stage.fail(&lease)).await;
}

pub async fn the_earliest_of_several_waits_wakes_the_run(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let sleep = |path, ms| lease.report(act::Sleep { step: step(path), duration_ms: ms, park: false });
    stage.ok(sleep("long", 60_000)).await;
    stage.ok(sleep("short", 5_000)).await;

    stage.ok(lease.report(act::Park { waits: Vec::new(), wake: Default::default() })).await;

    stage.pass_ms(4_999);
    stage.settle().await;
    assert!(standing.ready().is_none());
    stage.pass_ms(1);
    assert_eq!(standing.next().await.run.epoch, 2);
}

pub async fn a_thousand_sleepers_due_at_once_are_all_delivered_and_none_early(stage: Stage) {
    sleepers_due_at_once(stage, 1_000).await;
}

pub async fn ten_thousand_sleepers_due_at_once_all_finish_once_and_none_early(stage: Stage) {
    sleepers_due_at_once(stage, 10_000).await;
}

async fn sleepers_due_at_once(stage: Stage, count: usize) {
    let mut standing = stage.stand_by(count as u32).await;
    let starts = (0..count).map(|number| stage.new_run(&format!("order-{number}")));
    accepted(&stage, starts.map(Command::start).collect()).await;
    let mut sleeps = Vec::new();
    for _ in 0..count {
        let lease = standing.next().await.lease();
        sleeps.push(stage.sleep(&lease, "nap", 60_000));
    }
    let until = stage.now().plus_ms(60_000);
    accepted(&stage, sleeps).await;

    stage.pass_until_just_before(until);
    stage.settle().await;
    assert!(standing.ready().is_none());
    stage.pass_one_tick();

    let mut woken = HashSet::new();
    let mut ends = Vec::new();
    for _ in 0..count {
        let assignment = standing.next().await;
        let claimed_at = assignment.run.lease().unwrap().since;
        assert!(claimed_at >= until);
        assert!(woken.insert(assignment.run.id), "woken twice");
        ends.push(stage.complete(&assignment.lease()));
    }
    accepted(&stage, ends).await;
    assert!(standing.ready().is_none());
}

/// Applies commands in calls of a size that clients send.
async fn accepted(stage: &Stage, commands: Vec<Command>) {
    for call in commands.chunks(1_000) {
        assert!(stage.apply_all(call.to_vec()).await.iter().all(Result::is_ok));
    }
}

pub async fn a_person_can_cut_a_retry_short_but_not_a_sleep(stage: Stage) {
    let mut standing = stage.stand_by(2).await;
    let retrying = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(stage.fail_step(&lease, "charge", 1)).await;
    let sleeping = stage.start("order-2").await;
    let lease = standing.next().await.lease();
    stage.ok(stage.sleep(&lease, "nap", 60_000)).await;

    stage.ok(stage.resume(retrying)).await;
    let refused = stage.apply(stage.resume(sleeping)).await;

    assert_eq!(standing.next().await.run.id, retrying);
    assert!(refused.is_err(), "{refused:?}");
}

pub async fn a_run_due_while_nobody_has_room_is_given_out_later(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let sleeper = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(stage.sleep(&lease, "nap", 1_000)).await;
    stage.start("order-2").await;
    let busy = standing.next().await.lease();

    stage.pass_ms(LEASE_MS as u64 / 2);
    stage.settle().await;
    assert!(standing.ready().is_none());
    stage.ok(stage.complete(&busy)).await;

    assert_eq!(standing.next().await.run.id, sleeper);
}

pub async fn waking_and_parking_count_as_no_attempt(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;

    for nap in ["first", "second"] {
        stage.ok(stage.sleep(&standing.next().await.lease(), nap, 1_000)).await;
        stage.pass_ms(1_000);
    }
    stage.ok(stage.fail_step(&standing.next().await.lease(), "charge", 1)).await;
    stage.pass_ms(1_000);
    stage.ok(stage.release(&standing.next().await.lease())).await;
    standing.next().await;

    let seen = stage.run(run).await;
    assert_eq!((seen.attempts, seen.crashes, seen.dispatch_count), (0, 0, 5));
}

pub async fn a_step_that_began_by_a_call_fails_by_the_policy_it_named_there(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let once = RetryPolicy { maximum_attempts: Some(1), ..RetryPolicy::default() };
    stage
        .ok(lease.report(act::BeginStep {
            step: step("charge"),
            timeout_ms: None,
            standard_ms: None,
            policy: once,
        }))
        .await;

    let reply = stage.ok(stage.fail_step(&lease, "charge", 1)).await;

    assert_eq!(reply, Reply::Attempted(Attempted::Final { attempts: 1, finality: Finality::Exhausted }));
}

pub async fn a_step_that_runs_too_long_is_a_failed_attempt(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let policy = RetryPolicy::default();
    let begin = lease.report(act::BeginStep {
        step: step("slow"),
        timeout_ms: Some(5_000),
        standard_ms: None,
        policy,
    });
    stage.ok(begin).await;

    stage.pass_ms(4_999);
    stage.sweep_expired().await;
    assert!(matches!(stage.run(run).await.state, State::Leased(_)));
    stage.pass_ms(1);
    stage.sweep_expired().await;

    let state = stage.run(run).await.state;
    let parked = state.parked().expect("it waits for its next attempt");
    assert_eq!((parked.step.as_deref(), parked.attempt), (Some("slow"), 1));
    assert_eq!(state.error_code().map(|code| &**code), Some("TIMED_OUT"));
    assert_eq!(stage.told.lost(run).await.worker, standing.worker, "the worker may hang: it loses the run");
    assert!(stage.apply(stage.record(&lease, "slow", b"late")).await.is_err());
}
