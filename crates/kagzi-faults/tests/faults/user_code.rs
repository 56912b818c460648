//! Code that panics, input that cannot be decoded, types that nobody has, and code that changed.

use kagzi_faults::{Move, Pace, Script, StepPlan, stage, start_request};
use kagzi_proto::v1::{self, WorkflowStatus};

#[tokio::test]
async fn a_workflow_that_panics_fails_with_its_message_and_gives_its_slot_back() {
    let stage = stage!(Pace::Steady);
    let mut worker = stage.worker(&["--max-concurrent", "1"]).await;
    let panics = Script::steps(&["a"]).then(Move::Panic { message: "no stock of 'tea' 🍵".into() });

    let run = stage.start(&panics).await;
    let failed = stage.finished(&run).await;
    let next = stage.start(&Script::steps(&["b"])).await;
    stage.completed(&next).await;

    assert_eq!(failed.status(), WorkflowStatus::Failed);
    let error = failed.error.unwrap();
    assert_eq!((error.code.as_str(), error.message.as_str()), ("PANIC", "no stock of 'tea' 🍵"));
    assert_eq!(stage.log.began(&next, "b")[0].pid, worker.pid());
    assert!(worker.is_running());
    let row = &stage.workers_of(worker.pid()).await[0];
    assert_eq!((row.total_completed, row.total_failed, row.active_count), (1, 1, 0));
    stage.close().await;
}

#[tokio::test]
async fn a_step_that_panics_is_retried_by_its_policy_and_then_fails_for_good() {
    let stage = stage!(Pace::Steady);
    let mut worker = stage.worker(&[]).await;
    let plan = |panics| StepPlan {
        name: "shaky".into(),
        panics,
        retry_ms: Some(10),
        attempts_max: Some(3),
        ..StepPlan::default()
    };

    let heals = stage.start(&Script::default().planned(plan(2))).await;
    let never_heals = stage.start(&Script::default().planned(plan(9))).await;
    stage.completed(&heals).await;
    let failed = stage.finished(&never_heals).await;

    let attempts = |run: &str| stage.log.began(run, "shaky").iter().map(|e| e.attempt).collect::<Vec<_>>();
    assert_eq!(attempts(&heals), [1, 2, 3]);
    assert_eq!(attempts(&never_heals), [1, 2, 3]);
    assert_eq!(failed.status(), WorkflowStatus::Failed);
    let error = failed.error.unwrap();
    assert_eq!(error.code, "PANIC");
    assert!(error.message.contains("shaky panics on attempt 3"), "{}", error.message);
    assert!(worker.is_running());
    stage.close().await;
}

#[tokio::test]
async fn input_that_cannot_be_decoded_fails_the_run_on_the_first_attempt() {
    let stage = stage!(Pace::Steady);
    let mut worker = stage.worker(&[]).await;
    let inputs: [&[u8]; 5] = [b"", b"null", b"{\"moves\":7}", b"\xff\xfe\x00", b"[[[[[["];

    for input in inputs {
        let mut request = start_request("script", &Script::default());
        request.input = Some(v1::Payload { data: input.to_vec().into(), content_type: String::new() });
        let run = stage.start_with(request).await.unwrap().run_id;
        let failed = stage.finished(&run).await;

        assert_eq!(failed.status(), WorkflowStatus::Failed, "{input:?}");
        assert_eq!(failed.error.unwrap().code, "INVALID_INPUT", "{input:?}");
        assert_eq!((failed.dispatch_count, failed.attempts), (1, 1), "{input:?}");
    }

    assert!(worker.is_running());
    stage.close().await;
}

#[tokio::test]
async fn a_type_that_nobody_registers_waits_and_says_so_and_blocks_nobody() {
    let stage = stage!(Pace::Steady);
    let _worker = stage.worker(&["--max-concurrent", "1"]).await;
    let mut unknown = Vec::new();
    for _ in 0..20 {
        let request = start_request("unknown", &Script::steps(&["a"]));
        unknown.push(stage.start_with(request).await.unwrap().run_id);
    }

    let known = stage.start(&Script::steps(&["a"])).await;
    stage.completed(&known).await;
    let why = stage.explain(&unknown[0]).await;
    let waiting = stage.run(&unknown[0]).await;
    let _newcomer = stage.worker(&["--types", "unknown"]).await;
    for run in &unknown {
        stage.completed(run).await;
    }

    assert_eq!(why.reason(), v1::WaitReason::Ready);
    let expected = "no online worker on queue 'faults' registers type 'unknown'";
    assert!(why.sentence.contains(expected), "{}", why.sentence);
    assert_eq!((waiting.status(), waiting.dispatch_count), (WorkflowStatus::Pending, 0), "no claim loop");
    stage.close().await;
}

#[tokio::test]
async fn changed_code_pauses_the_run_until_it_is_repaired() {
    let stage = stage!(Pace::Fast);
    for (change, recorded, got) in [
        (&["--rename", "reserve=hold"][..], "recorded reserve at position 0", "got hold"),
        (&["--reverse"][..], "recorded reserve at position 0", "got ship"),
    ] {
        let gate = format!("charge-{}", change.len());
        let charge = StepPlan { name: "charge".into(), gate: Some(gate.clone()), ..StepPlan::default() };
        let first = stage.worker(&[]).await;
        let run = stage.start(&Script::steps(&["reserve"]).planned(charge).step("ship")).await;
        stage.began(&run, "charge", 1).await;
        first.kill().await;

        let changed = stage.worker(change).await;
        stage.until(&run, WorkflowStatus::Paused).await;
        let why = stage.explain(&run).await;
        changed.kill().await;
        stage.log.open_gate(&gate);
        let repaired = stage.worker(&[]).await;
        let resume = v1::ResumeWorkflowRunRequest { run_id: run.clone(), ..Default::default() };
        stage.workflows().resume_workflow_run(resume).await.unwrap();
        stage.completed(&run).await;
        repaired.kill().await;

        assert!(why.sentence.contains(recorded) && why.sentence.contains(got), "{}", why.sentence);
        assert_eq!(stage.log.began(&run, "reserve").len(), 1, "the recorded step was not run again");
        assert_eq!(stage.log.began(&run, "hold").len(), 0, "the changed step was not run");
    }
    stage.close().await;
}

#[tokio::test]
async fn a_step_that_blocks_its_thread_is_timed_out_by_the_server_and_retried() {
    let stage = stage!(Pace::Steady);
    let _workers = [stage.worker(&[]).await, stage.worker(&[]).await];
    let hangs = StepPlan {
        name: "hang".into(),
        gate: Some("hang".into()),
        blocks: true,
        retry_ms: Some(10),
        ..StepPlan::default()
    };
    let mut request = start_request("script", &Script::default().planned(hangs));
    let timeouts = v1::TimeoutConfig { start_to_close_timeout_seconds: Some(1), ..Default::default() };
    request.timeouts = Some(timeouts);

    let run = stage.start_with(request).await.unwrap().run_id;
    let ended = stage.completed(&run).await;
    stage.log.open_gate("hang");

    let events = stage.events(&run).await;
    let failed =
        events.iter().find(|event| event.kind() == v1::EventKind::StepFailed).expect("attempt 1 timed out");
    assert!(failed.detail_json.contains("TIMED_OUT"), "{}", failed.detail_json);
    assert_eq!(stage.log.began(&run, "hang").iter().map(|e| e.attempt).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(ended.attempts, 0);
    stage.close().await;
}

#[tokio::test]
async fn a_step_that_blocks_the_only_thread_does_not_silence_its_worker() {
    let stage = stage!(Pace::Fast);
    let worker = stage.worker(&["--one-thread"]).await;
    let blocking =
        StepPlan { name: "block".into(), gate: Some("block".into()), blocks: true, ..StepPlan::default() };
    let run = stage.start(&Script::default().planned(blocking).step("next")).await;
    stage.began(&run, "block", 1).await;
    let heard = async || {
        let at = stage.workers_of(worker.pid()).await[0].last_heartbeat_at.expect("it was heard of");
        at.seconds * 1000 + i64::from(at.nanos) / 1_000_000
    };

    let first = heard().await;
    let beyond = first + i64::try_from(2 * stage.pace.lease().as_millis()).unwrap();
    kagzi_faults::eventually("it is heard of for twice a lease", async || {
        (heard().await > beyond).then_some(())
    })
    .await;
    stage.log.open_gate("block");

    stage.completed(&run).await;
    assert_eq!(stage.workers_of(worker.pid()).await.len(), 1, "it never had to register again");
    assert_eq!(stage.log.began(&run, "block").len(), 1, "nobody else was given the run");
    stage.close().await;
}
