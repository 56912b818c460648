//! Workers that are killed, stopped, cut off, or killed by what they execute.

use kagzi_faults::{Evidence, Move, Pace, Phase, Proxy, Script, StepResult, eventually, stage};
use kagzi_proto::v1::{self, WorkerStatus, WorkflowRun, WorkflowStatus};

#[tokio::test]
async fn a_worker_killed_after_the_side_effect_repeats_the_step_under_the_same_key() {
    let stage = stage!(Pace::Fast);
    let first = stage.worker(&[]).await;
    let run = stage.start(&Script::steps(&["reserve"]).gated("charge").step("ship")).await;
    eventually("the effect", async || stage.log.of(&run, "charge", Phase::Effect).pop()).await;

    first.kill().await;
    let second = stage.worker(&[]).await;
    let charges = stage.began(&run, "charge", 2).await;
    stage.log.open_gate("charge");
    stage.completed(&run).await;

    assert_eq!(charges[0].key, charges[1].key);
    assert_eq!(charges[1].pid, second.pid());
    assert_eq!(stage.log.of(&run, "charge", Phase::Effect).len(), 1, "a deduplicating sink sees one effect");
    assert_eq!(stage.log.began(&run, "reserve").len(), 1, "a recorded step is not run again");
    assert_eq!(stage.run(&run).await.attempts, 0, "a lost worker is not the run's failure");
    assert_eq!(stage.close().await, Evidence { runs: 1, completed: 1, results: 3, executions: 4 });
}

#[tokio::test]
async fn a_stopped_worker_loses_its_run_and_comes_back_for_new_ones() {
    let stage = stage!(Pace::Fast);
    let mut stopped = stage.worker(&[]).await;
    let run = stage.start(&Script::default().gated("charge").step("ship")).await;
    stage.began(&run, "charge", 1).await;

    stopped.stop();
    let mut heir = stage.worker(&[]).await;
    stage.began(&run, "charge", 2).await;
    stage.log.open_gate("charge");
    let ended = stage.completed(&run).await;
    stopped.go_on();
    eventually("the stopped worker registers again", async || {
        let rows = stage.workers_of(stopped.pid()).await;
        (rows.len() == 2 && rows[0].status() == WorkerStatus::Online).then_some(())
    })
    .await;
    heir.terminate();
    assert!(heir.ended().await.success());
    let next = stage.start(&Script::steps(&["next"])).await;
    stage.completed(&next).await;

    assert!(results(&ended).iter().all(|result| result.pid == heir.pid()));
    assert_eq!(stage.run(&run).await.output, ended.output, "nothing was overwritten");
    assert_eq!(stage.log.began(&next, "next")[0].pid, stopped.pid());
    assert!(stage.log.began(&run, "ship").iter().all(|execution| execution.pid == heir.pid()));
    assert!(stopped.is_running());
    stage.close().await;
}

#[tokio::test]
async fn late_writes_of_a_worker_that_was_cut_off_are_refused_and_counted() {
    let stage = stage!(Pace::Fast);
    let proxy = Proxy::to(stage.address).await;
    let cut_off = stage.worker_at(proxy.address, &[]).await;
    let run = stage.start(&Script::default().gated("charge").step("ship")).await;
    stage.began(&run, "charge", 1).await;
    let refused_before = stage.metric("kagzi_stale_writes_refused_total").await;

    // Nobody can tell it that the run is lost, so it will try to write.
    proxy.lose_answers();
    cut_off.stop();
    let heir = stage.worker(&[]).await;
    stage.began(&run, "charge", 2).await;
    stage.log.open_gate("charge");
    let ended = stage.completed(&run).await;
    cut_off.go_on();
    eventually("it executes what it thinks it holds", async || {
        stage.log.of(&run, "charge", Phase::Ended).into_iter().find(|e| e.pid == cut_off.pid())
    })
    .await;
    proxy.cut();
    eventually("a refusal", async || {
        let refused = stage.metric("kagzi_stale_writes_refused_total").await;
        (refused > refused_before).then_some(())
    })
    .await;
    eventually("the worker registers again", async || {
        let rows = stage.workers_of(cut_off.pid()).await;
        (rows.len() == 2 && rows[0].status() == WorkerStatus::Online).then_some(())
    })
    .await;

    assert_eq!(stage.run(&run).await.output, ended.output, "nothing was overwritten");
    assert!(results(&ended).iter().all(|result| result.pid == heir.pid()));
    assert!(stage.log.began(&run, "ship").iter().all(|execution| execution.pid == heir.pid()));
    stage.close().await;
}

#[tokio::test]
async fn a_run_that_kills_every_worker_is_quarantined_and_the_others_finish() {
    let stage = stage!(Pace::Fast);
    let killer = stage.start(&Script::default().then(Move::Abort)).await;
    let mut others = Vec::new();
    for _ in 0..3 {
        let mut victim = stage.spawn_worker(stage.address, &[]);
        assert!(!victim.ended().await.success(), "the supervisor sees it die");
        others.push(stage.start(&Script::steps(&["a", "b"])).await);
    }

    let paused = stage.until(&killer, WorkflowStatus::Paused).await;
    let mut survivor = stage.worker(&[]).await;
    for other in &others {
        stage.completed(other).await;
    }

    assert_eq!(paused.dispatch_count, 3);
    let why = stage.explain(&killer).await;
    assert_eq!(why.reason(), v1::WaitReason::Paused);
    assert!(why.sentence.contains("quarantine"), "{}", why.sentence);
    assert!(why.sentence.contains("lost 3 times in a row without progress"), "{}", why.sentence);
    assert!(survivor.is_running());
    stage.close().await;
}

/// Wrong, and asserted as it is today: FAULTS.md wants others unaffected. A run that is in flight at every
/// one of the killer's three crashes counts for them too, because a lost worker does not tell which of
/// its runs did it.
#[tokio::test]
async fn a_neighbour_that_is_in_flight_at_every_crash_is_quarantined_too_and_can_be_resumed() {
    let stage = stage!(Pace::Fast);
    let innocent = stage.start(&Script::default().gated("slow")).await;
    let killer = stage.start(&Script::default().then(Move::Abort)).await;

    // A supervisor that never tires. The innocent run is always in flight when the worker dies.
    while stage.run(&killer).await.status() != WorkflowStatus::Paused {
        let mut victim = stage.spawn_worker(stage.address, &[]);
        eventually("the worker dies, or the killer is out of the way", async || {
            let dead = !victim.is_running();
            (dead || stage.run(&killer).await.status() == WorkflowStatus::Paused).then_some(())
        })
        .await;
    }
    let quarantined = stage.until(&innocent, WorkflowStatus::Paused).await;
    let _survivor = stage.worker(&[]).await;
    stage.log.open_gate("slow");
    let resume = v1::ResumeWorkflowRunRequest { run_id: innocent.clone(), ..Default::default() };
    stage.workflows().resume_workflow_run(resume).await.unwrap();
    stage.completed(&innocent).await;

    assert_eq!(quarantined.dispatch_count, 3);
    stage.close().await;
}

fn results(run: &WorkflowRun) -> Vec<StepResult> {
    serde_json::from_slice(&run.output.as_ref().expect("it completed").data).expect("scripts return results")
}
