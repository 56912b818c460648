//! A worker writes under a lease: run and epoch. Whoever lost it is refused, whatever it writes.

use kagzi_model::{
    Author, Command, Done, LeaseRef, Payload, Rejection, Reply, RetryPolicy, Run, RunId, RunKey, State,
    Status, StepRef, Timestamp, act,
};
use kagzi_store::{Beat, LaneStats, SweepKind};

use crate::{LEASE_MS, Stage, stage::step};

pub async fn every_lease_raises_the_epoch(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;

    for epoch in 1..=5 {
        let assignment = standing.next().await;
        assert_eq!((assignment.run.id, assignment.run.epoch), (run, epoch));
        assert_eq!(stage.run(run).await.dispatch_count, u32::try_from(epoch).unwrap());
        stage.ok(stage.release(&assignment.lease())).await;
        // The more often it is given back, the longer it waits.
        stage.pass_ms(60_000);
    }
}

fn every_write(stage: &Stage, lease: &LeaseRef) -> Vec<Command> {
    let lease = || lease.clone();
    vec![
        stage.begin(&lease(), "a"),
        lease().report(act::Progress { step: step("a"), progress: Payload::new(&b"late"[..]) }),
        stage.record(&lease(), "a", b"late"),
        stage.fail_step(&lease(), "a", 1),
        stage.sleep(&lease(), "nap", 1_000),
        lease().report(act::SleepOver { step: "nap".into() }),
        lease().report(act::Complete { steps: Vec::new(), output: Payload::new(&b"late"[..]) }),
        stage.fail(&lease()),
        lease().report(act::Park { waits: Vec::new(), wake: Default::default() }),
        stage.release(&lease()),
        lease().report(act::Block { message: "late".into() }),
        lease().report(act::Renew { until: Timestamp::MAX }),
    ]
}

pub async fn every_write_under_a_stale_lease_is_refused(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let stale = standing.next().await.lease();
    stage.ok(stage.release(&stale)).await;
    let current = standing.next().await.lease();
    let before = (stage.run(run).await, stage.events(run).await);

    for command in every_write(&stage, &stale) {
        let told = format!("{command:?}");
        let outcome = stage.apply(command).await;

        assert_eq!(outcome, Err(Rejection::StaleEpoch { run, named: 1, current: 2 }), "{told}");
    }
    assert_eq!((stage.run(run).await, stage.events(run).await), before);
    stage.ok(stage.complete(&current)).await;
}

pub async fn every_late_write_to_an_ended_run_is_refused(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(stage.cancel(run)).await;
    let before = (stage.run(run).await, stage.events(run).await);

    for command in every_write(&stage, &lease) {
        let told = format!("{command:?}");
        let outcome = stage.apply(command).await;

        assert_eq!(outcome, Err(Rejection::Ended { run, status: Status::Cancelled }), "{told}");
    }
    assert_eq!((stage.run(run).await, stage.events(run).await), before);
}

pub async fn a_run_that_waits_has_no_lease_to_write_under(stage: Stage) {
    let run = stage.start("order-1").await;
    let lease = LeaseRef { namespace: stage.namespace.clone(), run, epoch: 0 };

    let outcome = stage.apply(stage.complete(&lease)).await;

    assert_eq!(outcome, Err(Rejection::NotLeased { run, status: Status::Pending }));
}

fn lease_end(run: &Run) -> Timestamp {
    run.lease().expect("the run is leased").until
}

pub async fn a_heartbeat_renews_to_now_plus_the_length_and_never_adds_up(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let given = stage.now().plus_ms(LEASE_MS);
    assert_eq!(lease_end(&stage.run(run).await), given);

    for _ in 0..5 {
        stage.beat(standing.worker, vec![lease.clone()]).await.unwrap();
    }
    assert_eq!(lease_end(&stage.run(run).await), given, "heartbeats at one moment add nothing");
    stage.pass_ms(20_000);
    for _ in 0..5 {
        stage.beat(standing.worker, vec![lease.clone()]).await.unwrap();
    }

    assert_eq!(lease_end(&stage.run(run).await), stage.now().plus_ms(LEASE_MS));
}

pub async fn a_runs_own_heartbeat_timeout_is_the_length_of_its_lease(stage: Stage) {
    let mut standing = stage.stand_by(2).await;
    let mut patient = stage.new_run("patient");
    patient.options.timeouts.heartbeat_ms = Some(120_000);
    let patient = stage.start_with(patient).await;
    let plain = stage.start("plain").await;
    let leases = vec![standing.next().await.lease(), standing.next().await.lease()];

    stage.beat(standing.worker, leases).await.unwrap();

    let until = async |run| stage.run(run).await.lease().unwrap().until;
    assert_eq!(until(patient).await, stage.now().plus_ms(120_000));
    assert_eq!(until(plain).await, stage.now().plus_ms(LEASE_MS));
}

pub async fn a_renewed_lease_outlives_its_first_length(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();

    for _ in 0..6 {
        stage.pass_ms(10_000);
        let answer = stage.beat(standing.worker, vec![lease.clone()]).await.unwrap();
        assert!(answer.lost.is_empty());
        stage.sweep_expired().await;
    }

    assert_eq!(stage.run(run).await.epoch, 1);
    stage.ok(stage.complete(&lease)).await;
}

pub async fn a_lease_that_ran_out_is_taken_back_by_the_sweep_and_not_before(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let until = lease_end(&standing.next().await.run);

    stage.pass_until_just_before(until);
    stage.sweep_expired().await;
    assert!(matches!(stage.run(run).await.state, State::Leased(_)));
    stage.pass_one_tick();
    stage.sweep_expired().await;

    assert_eq!(stage.waits(run).await.0, "retry");
    let lost = stage.told.lost(run).await;
    assert_eq!((lost.worker, lost.epoch, lost.cancelled), (standing.worker, 1, false));
}

pub async fn unlisted_leases_are_given_back_after_the_grace(stage: Stage) {
    let mut standing = stage.stand_by(2).await;
    let (kept, unlisted) = (stage.start("order-1").await, stage.start("order-2").await);
    let kept_lease = standing.next().await.lease();
    standing.next().await;
    stage.store.withdraw(standing.demand).await.unwrap();
    let beat = || Beat {
        id: standing.worker,
        of: None,
        runs: vec![kept_lease.clone()],
        lease_ms: LEASE_MS,
        unlisted_after_ms: Some(5_000),
        reconnected: false,
        listed_before: Vec::new(),
    };

    stage.pass_ms(4_999);
    stage.beat_with(beat()).await.unwrap();
    assert!(matches!(stage.run(unlisted).await.state, State::Leased(_)), "its delivery may be on the way");
    stage.pass_ms(1);
    stage.beat_with(beat()).await.unwrap();

    let given_back = stage.run(unlisted).await;
    assert!(matches!(given_back.state, State::Ready { .. }));
    assert_eq!((given_back.attempts, given_back.crashes), (0, 0));
    assert!(matches!(stage.run(kept).await.state, State::Leased(_)));
    assert_eq!(stage.active(standing.worker).await, 1);
}

pub async fn listed_but_lost_leases_are_reported(stage: Stage) {
    let mut standing = stage.stand_by(3).await;
    let (cancelled, kept) = (stage.start("order-1").await, stage.start("order-2").await);
    let leases = [standing.next().await.lease(), standing.next().await.lease()];
    stage.ok(stage.cancel(cancelled)).await;
    let unknown = LeaseRef { namespace: stage.namespace.clone(), run: RunId(uuid::Uuid::now_v7()), epoch: 1 };

    let listed = leases.iter().cloned().chain([unknown.clone()]).collect();
    let answer = stage.beat(standing.worker, listed).await.unwrap();

    let ended = Rejection::Ended { run: cancelled, status: Status::Cancelled };
    let missing = Rejection::NotFound { run: unknown.run, namespace: stage.namespace.clone() };
    assert_eq!(answer.lost, [(leases[0].clone(), ended), (unknown, missing)]);
    assert_eq!(stage.run(kept).await.epoch, leases[1].epoch);
}

pub async fn a_repeated_command_is_answered_and_writes_nothing(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let record = stage.record(&lease, "a", b"result");
    let sleep = stage.sleep(&lease, "nap", 1_000);

    for command in [record, sleep] {
        stage.ok(command.clone()).await;
        let before = stage.events(run).await;
        stage.ok(command).await;
        assert_eq!(stage.events(run).await, before);
    }
    stage.pass_ms(1_000);
    let complete = stage.complete(&standing.next().await.lease());
    assert_eq!(stage.ok(complete.clone()).await, Reply::Done(Done { already: false }));
    assert_eq!(stage.ok(complete).await, Reply::Done(Done { already: true }));
    assert_eq!(stage.event_names(run).await.iter().filter(|name| **name == "run_completed").count(), 1);
}

pub async fn a_sweep_that_waited_for_its_turn_takes_no_lease_that_ran_out_meanwhile(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let asked_at = stage.now();

    // The server stood still between the sweeper's look and this turn: heartbeats wait behind it.
    stage.pass_ms(2 * LEASE_MS as u64);
    stage.sweep(SweepKind::Expired { now: asked_at, leap: None }).await;

    let answer = stage.beat(standing.worker, vec![lease.clone()]).await.unwrap();
    assert_eq!(answer.lost, []);
    stage.ok(stage.complete(&lease)).await;
}

/// The number that tells of workers that lost their runs must not rise because a person came too late.
pub async fn an_order_that_comes_too_late_is_no_stale_write(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(stage.complete(&lease)).await;
    let stale = |stage: &Stage| LaneStats::get(&stage.store.stats().refused_stale);
    let before = stale(&stage);
    let key = RunKey::new(stage.namespace.clone(), run);
    let by = || Author::new("tester", "too late");
    let retry = act::Retry { from: None, request: None };

    for order in [
        key.clone().order(by(), act::Cancel),
        key.clone().order(by(), act::Terminate),
        key.clone().order(by(), act::Resume { request: None }),
        key.order(by(), retry),
    ] {
        stage.apply(order).await.unwrap_err();
    }

    assert_eq!(stale(&stage), before);
    stage.apply(stage.release(&lease)).await.unwrap_err();
    assert_eq!(stale(&stage), before + 1);
}

pub async fn a_report_that_contradicts_the_record_pauses_its_run_in_the_same_commit(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(stage.record(&lease, "charge", b"paid")).await;
    let moved = StepRef { path: "charge".into(), position: 7 };
    let (policy, commits) = (RetryPolicy::default(), LaneStats::get(&stage.store.stats().commits));

    let begin = act::BeginStep { step: moved, timeout_ms: None, standard_ms: None, policy };
    let refused = stage.apply(lease.report(begin)).await.unwrap_err();

    assert!(matches!(refused, Rejection::StepMismatch { .. }), "{refused}");
    assert_eq!(LaneStats::get(&stage.store.stats().commits), commits + 1);
    let State::Paused { by, why, .. } = stage.run(run).await.state else { panic!("it is not paused") };
    assert_eq!((&*by, why), ("replay", refused.to_string()));
}
