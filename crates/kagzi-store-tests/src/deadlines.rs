//! A deadline ends a run wherever it stands.

use kagzi_model::{Author, Failure, LeaseRef, RetryPolicy, RunId, RunKey, State, Status, act};

use crate::{Stage, Standing, stage::step};

const DEADLINE_MS: u64 = 20_000;

async fn start(stage: &Stage, standing: Option<&mut Standing>) -> (RunId, Option<LeaseRef>) {
    let mut start = stage.new_run("order-1");
    start.deadline_at = Some(stage.now().plus_ms(DEADLINE_MS as i64));
    let run = stage.start_with(start).await;
    let lease = match standing {
        Some(standing) => Some(standing.next().await.lease()),
        None => None,
    };
    (run, lease)
}

/// Passes the deadline and checks that the run ended by it, once, and not before.
async fn passes(stage: &Stage, run: RunId) {
    let deadline = stage.run(run).await.deadline_at.unwrap();
    stage.pass_until_just_before(deadline);
    stage.sweep_expired().await;
    assert!(!stage.run(run).await.state.finished());
    stage.pass_one_tick();
    stage.sweep_expired().await;
    stage.sweep_expired().await;

    let ended = stage.run(run).await;
    assert_eq!((ended.state.status(), ended.finished_at), (Status::TimedOut, Some(deadline)));
    let names = stage.event_names(run).await;
    assert_eq!(names.iter().filter(|name| **name == "run_timed_out").count(), 1);
    assert_eq!(stage.told.finished(run).await.run, ended);
    stage.settle().await;
    assert_eq!(stage.told.finished_left(run).await, 0);
}

pub async fn a_deadline_ends_a_queued_run(stage: Stage) {
    let (run, _) = start(&stage, None).await;

    passes(&stage, run).await;
}

pub async fn a_deadline_ends_a_leased_run_and_tells_its_worker(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let (run, lease) = start(&stage, Some(&mut standing)).await;

    passes(&stage, run).await;

    let lost = stage.told.lost(run).await;
    assert_eq!((lost.worker, lost.epoch, lost.cancelled), (standing.worker, 1, false));
    assert!(stage.apply(stage.complete(&lease.unwrap())).await.is_err());
}

pub async fn a_deadline_ends_a_sleeping_run(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let (run, lease) = start(&stage, Some(&mut standing)).await;
    stage.ok(stage.sleep(&lease.unwrap(), "nap", 3_600_000)).await;

    passes(&stage, run).await;
    stage.pass_ms(3_600_000);
    stage.settle().await;

    assert!(standing.ready().is_none(), "an ended run has no timer");
}

pub async fn a_deadline_ends_a_retrying_run(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let (run, lease) = start(&stage, Some(&mut standing)).await;
    let failure = Failure::new("BROKEN", "it broke").retry_after(3_600_000);
    let (step, policy) = (step("charge"), RetryPolicy::default());
    let failed = act::FailStep { step, attempt: 1, failure, policy, elapsed_ms: 0, park: true };
    stage.ok(lease.unwrap().report(failed)).await;

    passes(&stage, run).await;
}

pub async fn a_deadline_ends_a_paused_run(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let (run, lease) = start(&stage, Some(&mut standing)).await;
    stage.ok(lease.unwrap().report(act::Block { message: "code changed".into() })).await;
    assert!(matches!(stage.run(run).await.state, State::Paused { .. }));

    passes(&stage, run).await;
}

/// The operator overruled the deadline; were it still stored, the next sweep or restart would end the run
/// again.
pub async fn a_reopened_run_forgets_the_deadline_that_passed(stage: Stage) {
    let (run, _) = start(&stage, None).await;
    passes(&stage, run).await;

    stage
        .ok(RunKey::new(stage.namespace.clone(), run)
            .order(Author::new("tester", ""), act::Retry { from: None, request: None }))
        .await;
    stage.pass_ms(DEADLINE_MS);
    stage.sweep_expired().await;

    let open = stage.run(run).await;
    assert_eq!((open.state.status(), open.deadline_at, open.finished_at), (Status::Pending, None, None));
    assert_eq!(stage.stand_by(1).await.next().await.run.id, run);
}
