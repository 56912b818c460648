//! Workers that end in good order.

use kagzi_faults::{Evidence, Pace, Phase, Script, Stage, eventually, stage};
use kagzi_proto::v1::{self, WorkerStatus, WorkflowStatus};

async fn is(stage: &Stage, pid: u32, status: WorkerStatus) -> v1::Worker {
    eventually(&format!("worker {pid} is {}", status.as_str_name()), async || {
        stage.workers_of(pid).await.into_iter().find(|row| row.status() == status)
    })
    .await
}

#[tokio::test]
async fn a_drain_longer_than_the_lease_executes_nothing_twice() {
    let stage = stage!(Pace::Fast);
    let mut draining = stage.worker(&[]).await;
    let run = stage.start(&Script::default().gated("charge").step("ship")).await;
    stage.began(&run, "charge", 1).await;
    let idle = stage.worker(&[]).await;
    let locked_until = stage.run(&run).await.locked_until.expect("it is leased").seconds;

    draining.terminate();
    is(&stage, draining.pid(), WorkerStatus::Draining).await;
    let next = stage.start(&Script::steps(&["next"])).await;
    stage.completed(&next).await;
    let later = locked_until + 2 * i64::try_from(stage.pace.lease().as_secs()).unwrap();
    eventually("heartbeats go on", async || {
        let seen = stage.run(&run).await;
        assert_eq!((seen.status(), seen.lease_epoch), (WorkflowStatus::Running, 1));
        (seen.locked_until.expect("it is leased").seconds > later).then_some(())
    })
    .await;
    stage.log.open_gate("charge");
    let ended = stage.completed(&run).await;
    let exit = draining.ended().await;
    let left = is(&stage, draining.pid(), WorkerStatus::Offline).await;

    assert_eq!(exit.code(), Some(0));
    assert_eq!(ended.dispatch_count, 1);
    assert_eq!(stage.log.began(&next, "next")[0].pid, idle.pid(), "a draining worker takes nothing new");
    assert_eq!(stage.log.began(&run, "ship")[0].pid, draining.pid());
    let (left_at, ended_at) = (left.deregistered_at.unwrap(), ended.finished_at.unwrap());
    assert!((left_at.seconds, left_at.nanos) >= (ended_at.seconds, ended_at.nanos), "it deregisters last");
    assert_eq!(left.total_completed, 1);
    assert_eq!(stage.close().await, Evidence { runs: 2, completed: 2, results: 3, executions: 3 });
}

#[tokio::test]
async fn a_drain_that_takes_too_long_gives_runs_back_without_counting_as_an_attempt() {
    let stage = stage!(Pace::Steady);
    let mut draining = stage.worker(&["--drain-timeout-ms", "200"]).await;
    let run = stage.start(&Script::steps(&["reserve"]).gated("charge")).await;
    stage.began(&run, "charge", 1).await;

    draining.terminate();
    let exit = draining.ended().await;
    let released = stage.run(&run).await;
    let heir = stage.worker(&[]).await;
    stage.began(&run, "charge", 2).await;
    stage.log.open_gate("charge");
    stage.completed(&run).await;

    assert_eq!(exit.code(), Some(0));
    assert_eq!((released.status(), released.attempts), (WorkflowStatus::Pending, 0));
    assert_eq!(released.reason(), v1::WaitReason::Ready);
    let kinds = stage.kinds(&run).await;
    assert!(kinds.contains(&"run_released".to_owned()) && !kinds.contains(&"lease_lost".to_owned()));
    assert!(stage.log.of(&run, "charge", Phase::Ended).iter().all(|e| e.pid == heir.pid()));
    is(&stage, draining.pid(), WorkerStatus::Offline).await;
    stage.close().await;
}

#[tokio::test]
async fn a_draining_worker_reports_what_it_holds_to_a_restarted_server() {
    let stage = stage!(Pace::Steady);
    let mut draining = stage.worker(&[]).await;
    let run = stage.start(&Script::default().gated("charge").step("ship")).await;
    stage.began(&run, "charge", 1).await;
    draining.terminate();
    is(&stage, draining.pid(), WorkerStatus::Draining).await;

    stage.kill_server().await;
    stage.restart_server().await;
    stage.log.open_gate("charge");
    let ended = stage.completed(&run).await;
    let exit = draining.ended().await;

    assert_eq!(exit.code(), Some(0));
    assert_eq!((ended.dispatch_count, stage.log.began(&run, "charge").len()), (1, 1));
    is(&stage, draining.pid(), WorkerStatus::Offline).await;
    stage.close().await;
}

#[tokio::test]
async fn a_worker_drained_by_an_operator_finishes_and_ends() {
    let stage = stage!(Pace::Steady);
    let mut drained = stage.worker(&[]).await;
    let run = stage.start(&Script::default().gated("charge")).await;
    stage.began(&run, "charge", 1).await;
    let worker_id = stage.workers_of(drained.pid()).await[0].worker_id.clone();

    let request = v1::DrainWorkerRequest { worker_id, ..Default::default() };
    stage.registry().drain_worker(request).await.unwrap();
    let queued = stage.start(&Script::steps(&["next"])).await;
    let why = stage.explain(&queued).await;
    stage.log.open_gate("charge");
    stage.completed(&run).await;

    assert_eq!(drained.ended().await.code(), Some(0));
    assert!(why.sentence.contains("draining"), "{}", why.sentence);
    assert_eq!(stage.run(&queued).await.dispatch_count, 0);
    is(&stage, drained.pid(), WorkerStatus::Offline).await;
    stage.close().await;
}
