//! A run ends once, everybody who waits is told once, and a cancel reaches it wherever it stands.

use futures_util::future::join;
use kagzi_model::{
    Author, Done, EventKind, LeaseRef, OnFailure, Ordered, Payload, Rejection, Reply, RunId, RunKey, State,
    Status, StepRef, StepResult, act,
};
use kagzi_store::Deregister;

use crate::{Stage, Standing};

async fn leased(stage: &Stage) -> (RunId, LeaseRef, Standing) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    (run, lease, standing)
}

/// Cancels and checks that the run ended, that it was told once, and that nothing happens any more.
async fn cancelled(stage: &Stage, run: RunId) {
    let first = stage.ok(stage.cancel(run)).await;
    let second = stage.ok(stage.cancel(run)).await;

    let status = Status::Cancelled;
    assert_eq!(first, Reply::Ordered(Ordered { status, already: false }));
    assert_eq!(second, Reply::Ordered(Ordered { status, already: true }));
    let ended = stage.run(run).await;
    assert_eq!(ended.state, State::Cancelled { reason: "asked to".into() });
    assert_eq!(ended.finished_at, Some(stage.now()));
    let told = stage.told.finished(run).await;
    assert_eq!((told.run, told.output), (ended, None));
    let events = stage.events(run).await;
    stage.pass_ms(24 * 3_600_000);
    stage.sweep_expired().await;
    stage.settle().await;
    assert_eq!(stage.events(run).await, events, "a cancelled run stays as it is");
    assert_eq!(stage.told.finished_left(run).await, 0);
}

pub async fn a_queued_run_can_be_cancelled(stage: Stage) {
    let run = stage.start("order-1").await;

    cancelled(&stage, run).await;

    assert_eq!(stage.told.lost_left(run).await, 0);
}

pub async fn a_leased_run_can_be_cancelled_and_its_worker_is_told(stage: Stage) {
    let (run, lease, standing) = leased(&stage).await;

    cancelled(&stage, run).await;

    let lost = stage.told.lost(run).await;
    assert_eq!((lost.worker, lost.epoch, lost.cancelled), (standing.worker, lease.epoch, true));
    assert_eq!(stage.active(standing.worker).await, 0);
}

pub async fn a_sleeping_run_can_be_cancelled(stage: Stage) {
    let (run, lease, mut standing) = leased(&stage).await;
    stage.ok(stage.sleep(&lease, "nap", 1_000)).await;

    cancelled(&stage, run).await;

    assert!(standing.ready().is_none());
}

pub async fn a_retrying_run_can_be_cancelled(stage: Stage) {
    let (run, lease, mut standing) = leased(&stage).await;
    stage.ok(stage.fail_step(&lease, "charge", 1)).await;

    cancelled(&stage, run).await;

    assert!(standing.ready().is_none());
}

pub async fn a_paused_run_can_be_cancelled(stage: Stage) {
    let (run, lease, _standing) = leased(&stage).await;
    stage.ok(lease.report(act::Block { message: "code changed".into() })).await;

    cancelled(&stage, run).await;
}

pub async fn a_cancel_that_races_the_end_has_one_winner(stage: Stage) {
    for _ in 0..5 {
        let mut standing = stage.stand_by(1).await;
        let run = stage.start(&uuid::Uuid::new_v4().to_string()).await;
        let lease = standing.next().await.lease();

        let (cancel, complete) =
            join(stage.apply(stage.cancel(run)), stage.apply(stage.complete(&lease))).await;

        let ended = stage.run(run).await.state.status();
        match (cancel, complete) {
            (Ok(_), Err(Rejection::Ended { status, .. })) => {
                assert_eq!((ended, status), (Status::Cancelled, Status::Cancelled));
            }
            (Err(Rejection::Ended { status, .. }), Ok(_)) => {
                assert_eq!((ended, status), (Status::Completed, Status::Completed));
            }
            both => panic!("{both:?}"),
        }
        stage.store.withdraw(standing.demand).await.unwrap();
    }
}

pub async fn the_end_is_told_once_with_its_output(stage: Stage) {
    let (run, lease, _standing) = leased(&stage).await;

    stage.ok(stage.complete(&lease)).await;
    stage.ok(stage.complete(&lease)).await;

    let told = stage.told.finished(run).await;
    assert_eq!(told.run, stage.run(run).await);
    assert_eq!(told.output.unwrap().data, "output");
    stage.settle().await;
    assert_eq!(stage.told.finished_left(run).await, 0);
    assert_eq!(stage.told.lost_left(run).await, 0, "a worker that ends its run does not lose it");
}

pub async fn a_failed_run_keeps_its_error(stage: Stage) {
    let (run, lease, _standing) = leased(&stage).await;

    stage.ok(stage.fail(&lease)).await;

    let ended = stage.run(run).await;
    assert_eq!((&*ended.failure().unwrap().code, ended.attempts), ("GAVE_UP", 1));
    assert_eq!(stage.told.finished(run).await.run, ended);
    let refused = stage.apply(stage.cancel(run)).await;
    assert_eq!(refused, Err(Rejection::Ended { run, status: Status::Failed }));
}

pub async fn a_failed_run_starts_its_handler_once_and_in_the_same_commit(stage: Stage) {
    let mut start = stage.new_run("order-1");
    let on_failure = OnFailure { workflow_type: "clean-up".into(), task_queue: None };
    start.options.on_failure = Some(on_failure);
    let mut standing = stage.stand_by(1).await;
    let worker = stage.register_for(&["clean-up"], 1).await;
    let mut cleaner = stage.stand_by_as(worker, &["clean-up"]).await;
    let run = stage.start_with(start).await;
    let lease = standing.next().await.lease();

    stage.ok(stage.fail(&lease)).await;
    stage.ok(stage.fail(&lease)).await;

    let names = stage.event_names(run).await;
    assert_eq!(names, ["run_started", "run_claimed", "run_failed", "handler_started"]);
    let handler = cleaner.next().await;
    assert_eq!(handler.run.options.handler_of, Some(run));
    stage.ok(stage.fail(&handler.lease())).await;
    stage.settle().await;
    assert!(cleaner.ready().is_none(), "a handler's failure starts no handler");
    assert_eq!(stage.event_names(run).await.last(), Some(&"handler_ended".to_owned()));
    assert!(matches!(stage.run(run).await.state, State::Failed { .. }));
}

pub async fn a_run_whose_id_looks_like_a_handlers_has_its_own_handler(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let worker = stage.register_for(&["clean-up"], 1).await;
    let mut cleaner = stage.stand_by_as(worker, &["clean-up"]).await;
    let mut start = stage.new_run("failure-of-the-week");
    start.options.on_failure = Some(OnFailure { workflow_type: "clean-up".into(), task_queue: None });
    let run = stage.start_with(start).await;

    stage.ok(stage.fail(&standing.next().await.lease())).await;

    assert_eq!(cleaner.next().await.run.options.handler_of, Some(run));
}

pub async fn the_namespaces_handler_is_known_even_when_its_worker_has_left(stage: Stage) {
    let handler = kagzi_model::FAILURE_HANDLER;
    let left = stage.register_for(&[handler], 1).await;
    stage.worker(Deregister { id: left }).await.unwrap();
    let (run, lease, _standing) = leased(&stage).await;

    stage.ok(stage.fail(&lease)).await;

    let back = stage.register_for(&[handler], 1).await;
    let handling = stage.stand_by_as(back, &[handler]).await.next().await;
    assert_eq!(handling.run.options.handler_of, Some(run));
}

pub async fn a_reopened_run_goes_on_with_its_recorded_steps(stage: Stage) {
    let (run, lease, mut standing) = leased(&stage).await;
    stage.ok(stage.record(&lease, "charge", b"paid")).await;
    stage.ok(stage.fail(&lease)).await;

    stage
        .ok(RunKey::new(stage.namespace.clone(), run)
            .order(Author::new("tester", ""), act::Retry { from: None, request: None }))
        .await;

    let again = standing.next().await;
    assert_eq!((again.run.id, again.run.epoch, again.fresh), (run, 2, false));
    assert!(stage.apply(stage.complete(&lease)).await.is_err(), "the old lease stays lost");
    stage.ok(stage.complete(&again.lease())).await;
}

pub async fn the_last_results_and_the_end_are_recorded_together_or_not_at_all(stage: Stage) {
    let (run, lease, _standing) = leased(&stage).await;
    stage.ok(stage.record(&lease, "first", b"1")).await;
    let result = |path: &str, position| StepResult {
        step: StepRef { path: path.into(), position },
        attempt: 1,
        result: Payload::new(path.as_bytes().to_vec()),
        elapsed_ms: 1,
    };
    let complete = |steps| lease.report(act::Complete { steps, output: Payload::new(&b"output"[..]) });
    let nap = StepRef { path: "nap".into(), position: 5 };
    stage.ok(lease.report(act::Sleep { step: nap, duration_ms: 1_000, park: false })).await;
    let before = stage.events(run).await;

    // The last of them is a sleep, which has no result.
    let wrong = complete(vec![result("second", 1), result("nap", 5)]);
    let refused = stage.apply(wrong).await.unwrap_err();
    assert!(matches!(refused, Rejection::StepDecided { .. }), "{refused:?}");
    assert_eq!(stage.events(run).await, before, "a refused end left something behind");
    let right = complete(vec![result("second", 1), result("third", 2)]);
    assert_eq!(stage.ok(right.clone()).await, Reply::Done(Done { already: false }));
    assert_eq!(stage.ok(right).await, Reply::Done(Done { already: true }));

    let added: Vec<_> = stage.events(run).await.into_iter().skip(before.len()).collect();
    let names: Vec<_> = added
        .iter()
        .map(|event| match &event.kind {
            EventKind::StepCompleted { step, .. } => step.to_string(),
            EventKind::RunCompleted => "end".to_owned(),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["second", "third", "end"]);
    assert_eq!(stage.run(run).await.state, State::Completed);
}

pub async fn every_order_says_in_its_event_who_gave_it_and_why(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let key = || RunKey::new(stage.namespace.clone(), run);
    let by = |reason: &str| Author::new("ada", reason);

    stage.ok(standing.next().await.lease().report(act::Block { message: "look".into() })).await;
    stage.ok(key().order(by("looked"), act::Resume { request: None })).await;
    stage.ok(key().order(by("hopeless"), act::Terminate)).await;
    stage.ok(key().order(by("not so hopeless"), act::Retry { from: None, request: None })).await;
    stage.ok(key().order(by("enough"), act::Cancel)).await;

    let told: Vec<_> = stage
        .events(run)
        .await
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::RunResumed { by, reason, .. } => Some((by, reason)),
            EventKind::RunReopened { by, reason, .. } => Some((by, reason)),
            EventKind::RunCancelled { by, reason } => Some((by, reason)),
            EventKind::RunFailed { by, failure, .. } => Some((by.unwrap_or_default(), failure.message)),
            _ => None,
        })
        .collect();
    let told: Vec<_> = told.iter().map(|(by, reason)| (&**by, reason.as_str())).collect();
    let reasons = ["looked", "hopeless", "not so hopeless", "enough"];
    assert_eq!(told, reasons.map(|reason| ("ada", reason)));
}
