//! A server that is killed at the worst moment, and comes back.

use kagzi_faults::{Evidence, Move, Pace, Phase, Proxy, Script, StepPlan, eventually, stage, start_request};
use kagzi_proto::v1::WorkflowStatus;

#[tokio::test]
async fn a_result_that_was_ready_while_the_server_was_dead_is_stored_once() {
    let stage = stage!(Pace::Steady);
    let _worker = stage.worker(&[]).await;
    let run = stage.start(&Script::default().gated("charge").step("ship")).await;
    stage.began(&run, "charge", 1).await;

    stage.kill_server().await;
    stage.log.open_gate("charge");
    eventually("the step ends", async || stage.log.of(&run, "charge", Phase::Ended).pop()).await;
    stage.restart_server().await;
    let ended = stage.completed(&run).await;

    assert_eq!(stage.log.began(&run, "charge").len(), 1);
    assert_eq!(ended.dispatch_count, 1, "the worker kept its lease");
    assert_eq!(stage.close().await, Evidence { runs: 1, completed: 1, results: 2, executions: 2 });
}

#[tokio::test]
async fn a_result_that_was_committed_but_never_answered_is_not_recorded_twice() {
    let stage = stage!(Pace::Steady);
    let proxy = Proxy::to(stage.address).await;
    let _worker = stage.worker_at(proxy.address, &[]).await;
    let run = stage.start(&Script::default().gated("charge").step("ship")).await;
    stage.began(&run, "charge", 1).await;

    proxy.lose_answers();
    stage.log.open_gate("charge");
    eventually("the commit", async || {
        stage.kinds(&run).await.contains(&"step_completed".to_owned()).then_some(())
    })
    .await;
    stage.kill_server().await;
    proxy.cut();
    stage.restart_server().await;
    let ended = stage.completed(&run).await;

    assert_eq!(ended.dispatch_count, 1, "the resend was answered OK under the same lease");
    assert_eq!(stage.kinds(&run).await.iter().filter(|kind| *kind == "step_completed").count(), 2);
    assert_eq!(stage.close().await, Evidence { runs: 1, completed: 1, results: 2, executions: 2 });
}

#[tokio::test]
async fn an_end_that_was_committed_but_never_answered_is_answered_when_it_is_sent_again() {
    let stage = stage!(Pace::Steady);
    let proxy = Proxy::to(stage.address).await;
    let mut worker = stage.worker_at(proxy.address, &[]).await;
    // The last step's result and the end are one report.
    let run = stage.start(&Script::steps(&["charge"]).gated("end")).await;
    stage.began(&run, "end", 1).await;

    proxy.lose_answers();
    stage.log.open_gate("end");
    let ended = stage.completed(&run).await;
    stage.kill_server().await;
    proxy.cut();
    stage.restart_server().await;
    // A drained worker leaves only after its last report was answered.
    worker.terminate();
    let exit = worker.ended().await;

    assert_eq!(exit.code(), Some(0));
    assert_eq!(stage.run(&run).await.output, ended.output);
    assert_eq!(stage.workers_of(worker.pid()).await[0].total_completed, 1, "counted once");
    assert_eq!(stage.close().await, Evidence { runs: 1, completed: 1, results: 2, executions: 2 });
}

#[tokio::test]
async fn the_same_result_sent_twice_is_told_to_be_recorded_already() {
    let stage = stage!(Pace::Steady);
    let worker = stage.hand_worker("by-hand").await;
    let run = stage.start_with(start_request("by-hand", &Script::default())).await.unwrap().run_id;
    let claimed = worker.poll(5_000).await.expect("a run");

    let first = worker.complete_step(&claimed, "charge", "1").await.unwrap();
    let before = stage.kinds(&run).await;
    stage.kill_server().await;
    stage.restart_server().await;
    let second =
        eventually("the server answers", async || worker.complete_step(&claimed, "charge", "2").await.ok())
            .await;

    assert!(!first.already_recorded && second.already_recorded);
    assert_eq!(stage.kinds(&run).await, before, "nothing was written");
    worker.complete(&claimed, "done").await.unwrap();
    worker.complete(&claimed, "another").await.expect("a repeat of the end is OK");
    assert_eq!(stage.run(&run).await.output.unwrap().data, "done");
    stage.close().await;
}

#[tokio::test]
async fn workers_that_come_back_within_the_grace_keep_their_leases() {
    let stage = stage!(Pace::Fast);
    let _holder = stage.worker(&[]).await;
    let run = stage.start(&Script::default().gated("charge")).await;
    stage.began(&run, "charge", 1).await;
    let _idle = stage.worker(&[]).await;
    let locked_until = stage.run(&run).await.locked_until.expect("it is leased").seconds;

    stage.kill_server().await;
    stage.restart_server().await;
    // Two whole leases later nobody has taken it over.
    let later = locked_until + 2 * i64::try_from(stage.pace.lease().as_secs()).unwrap();
    eventually("the lease is renewed", async || {
        let seen = stage.run(&run).await;
        assert_eq!((seen.status(), seen.lease_epoch), (WorkflowStatus::Running, 1));
        (seen.locked_until.expect("it is leased").seconds > later).then_some(())
    })
    .await;
    stage.log.open_gate("charge");
    stage.completed(&run).await;

    assert!(!stage.kinds(&run).await.contains(&"lease_lost".to_owned()));
    assert_eq!(stage.close().await, Evidence { runs: 1, completed: 1, results: 1, executions: 1 });
}

#[tokio::test]
async fn a_server_that_was_dead_for_longer_than_a_lease_waits_for_its_workers_first() {
    let stage = stage!(Pace::Fast);
    let worker = stage.hand_worker("by-hand").await;
    let run = stage.start_with(start_request("by-hand", &Script::default())).await.unwrap().run_id;
    let held = worker.poll(5_000).await.expect("a run");
    let locked_until = stage.run(&run).await.locked_until.expect("it is leased").seconds;

    stage.kill_server().await;
    eventually("the lease runs out", async || (now_secs() > locked_until + 1).then_some(())).await;
    stage.restart_server().await;
    let told = eventually("the server answers", async || worker.beat(&[&held]).await.ok()).await;

    assert!(told.lost.is_empty(), "{:?}", told.lost);
    worker.complete(&held, "done").await.expect("it never lost its lease");
    assert_eq!(stage.run(&run).await.dispatch_count, 1);
    stage.close().await;
}

#[tokio::test]
async fn sleeps_and_retries_go_on_after_a_crash_and_none_is_early() {
    let stage = stage!(Pace::Fast);
    let _worker = stage.worker(&[]).await;
    let failing = StepPlan { name: "flaky".into(), failures: 2, retry_ms: Some(700), ..Default::default() };
    let sleeper = Script::steps(&["a"]).then(Move::Sleep { ms: 1_500 }).step("b");
    let sleeper = stage.start(&sleeper).await;
    let retrier = stage.start(&Script::default().planned(failing)).await;
    stage.until(&sleeper, WorkflowStatus::Sleeping).await;

    stage.kill_server().await;
    stage.restart_server().await;
    stage.completed(&sleeper).await;
    stage.completed(&retrier).await;

    assert_eq!(stage.log.began(&sleeper, "a").len(), 1);
    assert_eq!(stage.log.began(&retrier, "flaky").len(), 3);
    // That nothing was early is checked on the file.
    stage.close().await;
}

#[tokio::test]
async fn a_server_that_was_stopped_for_a_while_does_not_take_runs_from_living_workers() {
    let stage = stage!(Pace::Fast);
    let _holder = stage.worker(&[]).await;
    let run = stage.start(&Script::default().gated("charge")).await;
    stage.began(&run, "charge", 1).await;
    let locked_until = stage.run(&run).await.locked_until.expect("it is leased").seconds;

    // As when a virtual machine is moved: for the server no time has passed, for its clock two leases have.
    let server = stage.take_server();
    server.stop();
    let long = 2 * i64::try_from(stage.pace.lease().as_secs()).unwrap();
    eventually("time passes", async || (now_secs() > locked_until + long).then_some(())).await;
    server.go_on();
    stage.put_server(server);
    let later = now_secs() + long;
    eventually("the lease is renewed", async || {
        let seen = stage.run(&run).await;
        assert_eq!((seen.status(), seen.lease_epoch), (WorkflowStatus::Running, 1));
        (seen.locked_until.expect("it is leased").seconds > later).then_some(())
    })
    .await;
    stage.log.open_gate("charge");
    stage.completed(&run).await;

    assert_eq!(stage.close().await, Evidence { runs: 1, completed: 1, results: 1, executions: 1 });
}

#[tokio::test]
async fn a_worker_holds_no_more_than_its_limit_after_a_restart() {
    let stage = stage!(Pace::Steady);
    let _worker = stage.worker(&["--max-concurrent", "2"]).await;
    let mut runs = Vec::new();
    for name in ["one", "two", "three", "four"] {
        runs.push((stage.start(&Script::default().gated(name)).await, name));
    }
    stage.began(&runs[0].0, "one", 1).await;
    stage.began(&runs[1].0, "two", 1).await;

    stage.kill_server().await;
    stage.restart_server().await;
    stage.log.open_gate("one");
    stage.completed(&runs[0].0).await;
    stage.began(&runs[2].0, "three", 1).await;
    let row = stage.run(&runs[3].0).await;
    let why = stage.explain(&runs[3].0).await;
    for (run, name) in &runs {
        stage.log.open_gate(name);
        stage.completed(run).await;
    }

    assert_eq!((row.status(), row.dispatch_count), (WorkflowStatus::Pending, 0));
    assert!(why.sentence.contains("in use"), "{}", why.sentence);
    stage.close().await;
}

#[tokio::test]
async fn a_run_whose_assignment_was_lost_on_the_stream_is_given_back_without_counting_as_an_attempt() {
    let stage = stage!(Pace::Steady);
    let proxy = Proxy::to(stage.address).await;
    let _worker = stage.worker_at(proxy.address, &[]).await;

    proxy.lose_answers();
    let run = stage.start(&Script::steps(&["charge"])).await;
    stage.until(&run, WorkflowStatus::Running).await;
    proxy.cut();
    let ended = stage.completed(&run).await;

    assert_eq!((ended.dispatch_count, ended.attempts), (2, 0));
    let kinds = stage.kinds(&run).await;
    assert!(kinds.contains(&"run_released".to_owned()), "{kinds:?}");
    assert!(!kinds.contains(&"lease_lost".to_owned()), "{kinds:?}");
    assert_eq!(stage.close().await, Evidence { runs: 1, completed: 1, results: 1, executions: 1 });
}

#[tokio::test]
async fn a_worker_that_never_heard_its_welcome_is_known_again_and_gets_its_run() {
    let stage = stage!(Pace::Steady);
    let proxy = Proxy::to(stage.address).await;
    proxy.lose_answers();
    let _worker = stage.worker_at(proxy.address, &[]).await;

    let run = stage.start(&Script::steps(&["charge"])).await;
    stage.until(&run, WorkflowStatus::Running).await;
    proxy.cut();
    let ended = stage.completed(&run).await;

    assert_eq!((ended.dispatch_count, ended.attempts), (2, 0));
    let kinds = stage.kinds(&run).await;
    assert!(!kinds.contains(&"lease_lost".to_owned()), "{kinds:?}");
    assert_eq!(stage.close().await, Evidence { runs: 1, completed: 1, results: 1, executions: 1 });
}

fn now_secs() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    i64::try_from(now.as_secs()).expect("before the end of time")
}
