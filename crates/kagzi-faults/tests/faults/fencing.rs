//! Who may write: leases, epochs and lost deliveries, driven by hand.

use std::time::Duration;

use kagzi_faults::{HandWorker, Pace, Script, Stage, eventually, stage, start_request};
use kagzi_proto::v1::{self, PollActivityResponse, WorkerStatus, WorkflowStatus};
use tonic::{Code, Status};

async fn start(stage: &Stage) -> String {
    stage.start_with(start_request("by-hand", &Script::default())).await.unwrap().run_id
}

/// Every kind of write that a worker can send for a run, with what it answers.
async fn all_writes(worker: &HandWorker, run: &PollActivityResponse) -> Vec<(&'static str, Option<Status>)> {
    let (run_id, lease_epoch) = (run.run_id.clone(), run.lease_epoch);
    let step_id = "late".to_owned();
    let mut rpc = worker.rpc.clone();
    let begin = v1::BeginStepRequest {
        run_id: run_id.clone(),
        step_id: step_id.clone(),
        lease_epoch,
        ..Default::default()
    };
    let fail_step = v1::FailStepRequest {
        run_id: run_id.clone(),
        step_id: step_id.clone(),
        lease_epoch,
        error: "late".into(),
        ..Default::default()
    };
    let sleep = v1::ScheduleSleepRequest {
        run_id: run_id.clone(),
        duration_seconds: 1,
        lease_epoch,
        ..Default::default()
    };
    let fail = v1::FailWorkflowRequest {
        run_id: run_id.clone(),
        error: "late".into(),
        lease_epoch,
        ..Default::default()
    };
    let release = v1::ReleaseRunRequest { run_id, lease_epoch, ..Default::default() };
    vec![
        ("BeginStep", rpc.begin_step(begin).await.err()),
        ("CompleteStep", worker.complete_step(run, "late", "1").await.err()),
        ("FailStep", rpc.fail_step(fail_step).await.err()),
        ("ScheduleSleep", rpc.schedule_sleep(sleep).await.err()),
        ("FailWorkflow", rpc.fail_workflow(fail).await.err()),
        ("ReleaseRun", rpc.release_run(release).await.err()),
        ("CompleteWorkflow", worker.complete(run, "late").await.err()),
    ]
}

#[tokio::test]
async fn every_late_write_is_refused_after_a_takeover_and_after_the_end() {
    let stage = stage!(Pace::Fast);
    let run = start(&stage).await;
    let late = stage.hand_worker("by-hand").await;
    let lost = late.poll(5_000).await.expect("a run");
    let heir = stage.hand_worker("by-hand").await;
    let held = eventually("the heir gets the run", async || {
        heir.beat(&[]).await.expect("it is alive");
        heir.poll(100).await
    })
    .await;

    let refused_before = stage.metric("kagzi_stale_writes_refused_total").await;
    let after_takeover = all_writes(&late, &lost).await;
    let refused = stage.metric("kagzi_stale_writes_refused_total").await - refused_before;
    heir.complete_step(&held, "charge", "1").await.unwrap();
    heir.complete(&held, "true output").await.unwrap();
    let history = stage.kinds(&run).await;
    let after_the_end = all_writes(&late, &lost).await;

    assert!(held.lease_epoch > lost.lease_epoch);
    assert_eq!(refused, 7.0);
    for (write, refusal) in after_takeover {
        let refusal = refusal.unwrap_or_else(|| panic!("{write} was accepted"));
        assert_eq!(refusal.code(), Code::FailedPrecondition, "{write}: {refusal}");
        assert!(refusal.message().contains("lease lost"), "{write}: {refusal}");
    }
    for (write, refusal) in after_the_end {
        let refusal = refusal.unwrap_or_else(|| panic!("{write} was accepted"));
        assert_eq!(refusal.code(), Code::FailedPrecondition, "{write}: {refusal}");
    }
    assert_eq!(stage.kinds(&run).await, history);
    assert_eq!(stage.run(&run).await.output.unwrap().data, "true output");
    stage.close().await;
}

#[tokio::test]
async fn a_worker_declared_stale_is_told_so_and_can_register_again() {
    let stage = stage!(Pace::Fast);
    let run = start(&stage).await;
    let stale = stage.hand_worker("by-hand").await;
    let lost = stale.poll(5_000).await.expect("a run");
    eventually("the worker is declared lost", async || {
        stage.workers_of(1).await.into_iter().find(|row| row.status() == WorkerStatus::Offline)
    })
    .await;

    let refusal = stale.beat(&[&lost]).await.unwrap_err();
    let again = stage.hand_worker("by-hand").await;
    let told = again.beat(&[&lost]).await.unwrap();
    let held = eventually("the run comes back", async || again.poll(100).await).await;

    assert_eq!(refusal.code(), Code::NotFound, "{refusal}");
    assert_eq!(told.lost.len(), 1, "held leases are looked at one by one");
    assert_eq!(held.run_id, run);
    again.complete(&held, "done").await.unwrap();
    stage.close().await;
}

#[tokio::test]
async fn a_run_whose_delivery_was_lost_is_given_back_without_counting_as_an_attempt() {
    let stage = stage!(Pace::Steady);
    let worker = stage.hand_worker("by-hand").await;
    let run = start(&stage).await;
    let lost = worker.poll(5_000).await.expect("a run");

    // The answer never arrived: the worker beats without it.
    eventually("the run is ready again", async || {
        worker.beat(&[]).await.unwrap();
        (stage.run(&run).await.status() == WorkflowStatus::Pending).then_some(())
    })
    .await;
    let found = worker.poll(5_000).await.expect("the run again");
    let seen = stage.run(&run).await;

    assert_eq!((found.run_id.as_str(), found.lease_epoch), (run.as_str(), lost.lease_epoch + 1));
    assert_eq!(seen.attempts, 0);
    assert!(!stage.kinds(&run).await.contains(&"lease_lost".to_owned()));
    worker.complete(&found, "done").await.unwrap();
    stage.close().await;
}

#[tokio::test]
async fn a_run_is_not_lost_to_a_poll_whose_caller_went_away() {
    let stage = stage!(Pace::Steady);
    let gone = stage.hand_worker("by-hand").await;
    for _ in 0..5 {
        // Gives up before there is anything to deliver.
        let given_up = tokio::time::timeout(Duration::from_millis(20), gone.poll(30_000)).await;
        assert!(given_up.is_err());
    }
    let run = start(&stage).await;
    let worker = stage.hand_worker("by-hand").await;

    let held = worker.poll(5_000).await.expect("the run, long before any lease has run out");

    assert_eq!((held.run_id.as_str(), stage.run(&run).await.attempts), (run.as_str(), 0));
    worker.complete(&held, "done").await.unwrap();
    stage.close().await;
}

#[tokio::test]
async fn a_worker_of_another_namespace_cannot_be_deregistered() {
    let stage = stage!(Pace::Steady);
    let worker = stage.hand_worker("by-hand").await;
    let request = v1::DeregisterWorkerRequest {
        worker_id: worker.id.clone(),
        namespace_id: "elsewhere".into(),
        ..Default::default()
    };

    let refusal = stage.registry().deregister_worker(request).await.err();

    assert_eq!(refusal.map(|refusal| refusal.code()), Some(Code::NotFound));
    assert_eq!(stage.workers_of(1).await[0].status(), WorkerStatus::Online);
    stage.close().await;
}

#[tokio::test]
async fn after_a_restore_nobody_writes_under_a_lease_of_the_time_that_is_gone() {
    use kagzi_server::sqlite;
    let stage = stage!(Pace::Calm);
    let (live, copy) = (stage.file().to_owned(), stage.file().with_extension("copy"));
    let run = start(&stage).await;
    let first = stage.hand_worker("by-hand").await;
    let held_at_backup = first.poll(5_000).await.expect("a run");
    first.complete_step(&held_at_backup, "reserve", "1").await.unwrap();
    sqlite::backup(&live, &copy).unwrap();
    // What the backup does not know: the run goes to somebody else, under the next epoch.
    let release = v1::ReleaseRunRequest {
        run_id: run.clone(),
        lease_epoch: held_at_backup.lease_epoch,
        ..Default::default()
    };
    first.rpc.clone().release_run(release).await.unwrap();
    let second = stage.hand_worker("by-hand").await;
    let held_after_backup = second.poll(5_000).await.expect("the run");
    second.complete_step(&held_after_backup, "charge", "lost").await.unwrap();

    stage.kill_server().await;
    let restored =
        tokio::task::spawn_blocking(move || sqlite::restore(&copy, &live, sqlite::Replace::Stopped));
    restored.await.unwrap().unwrap();
    stage.restart_server().await;
    let heir = stage.hand_worker("by-hand").await;
    let held = heir.poll(20_000).await.expect("the run is ready again at once");
    let mut late = all_writes(&first, &held_at_backup).await;
    late.extend(all_writes(&second, &held_after_backup).await);
    heir.complete_step(&held, "charge", "2").await.unwrap();
    heir.complete(&held, "true output").await.unwrap();

    assert_eq!(held_after_backup.lease_epoch, held_at_backup.lease_epoch + 1);
    let recorded: Vec<_> =
        held.journal.iter().map(|entry| entry.step.as_ref().unwrap().path.as_str()).collect();
    assert_eq!(recorded, ["reserve"], "what was recorded before the backup, and nothing else");
    for (write, refusal) in late {
        let refusal = refusal.unwrap_or_else(|| panic!("{write} was accepted"));
        assert_eq!(refusal.code(), Code::FailedPrecondition, "{write}: {refusal}");
        assert!(refusal.message().contains("lease lost"), "{write}: {refusal}");
    }
    let ended = stage.run(&run).await;
    assert_eq!((ended.output.unwrap().data, ended.attempts), ("true output".into(), 0));
    let first = stage.workers_of(1).await.into_iter().find(|worker| worker.worker_id == first.id).unwrap();
    assert_eq!(first.status(), WorkerStatus::Offline);
    let kinds = stage.kinds(&run).await;
    assert!(kinds.contains(&"run_released".to_owned()), "{kinds:?}");
    stage.close().await;
}
