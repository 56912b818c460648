//! Signals to a run whose server and workers die: each is taken once, in order, and none is lost.

use kagzi_faults::{Evidence, Move, Pace, Script, Stage, eventually, stage};
use kagzi_proto::v1::{self, WorkflowStatus, run_ref::Ref};

const SIGNALS: usize = 30;

/// Sends until the server says that it has it; a repeat is recognised by its id.
async fn tell(stage: &Stage, run: &str, id: usize) {
    let request = v1::SignalWorkflowRunRequest {
        run: Some(v1::RunRef { r#ref: Some(Ref::RunId(run.to_owned())) }),
        channel: "item".into(),
        signal_id: format!("s-{id}"),
        payload: Some(v1::Payload { data: id.to_string().into(), ..Default::default() }),
        ..Default::default()
    };
    eventually("the signal is told", async || {
        stage.workflows().signal_workflow_run(request.clone()).await.ok()
    })
    .await;
}

/// What the waits of the run took, in order.
async fn taken(stage: &Stage, run: &str) -> Vec<String> {
    let ends = stage.events(run).await.into_iter().filter(|event| event.kind() == v1::EventKind::WaitEnded);
    let id = |event: v1::RunEvent| {
        let detail: serde_json::Value = serde_json::from_str(&event.detail_json).expect("details are JSON");
        detail["id"].as_str().expect("a signal has an id").to_owned()
    };
    ends.map(id).collect()
}

#[tokio::test]
async fn every_signal_is_taken_once_and_in_order_although_server_and_workers_die() {
    let stage = stage!(Pace::Fast);
    let mut worker = stage.worker(&[]).await;
    let mut script = Script::default();
    for _ in 0..SIGNALS {
        script = script.then(Move::Signal { channel: "item".into() });
    }
    let run = stage.start(&script.step("ship")).await;

    for id in 0..SIGNALS {
        match id {
            7 | 22 => {
                worker.kill().await;
                worker = stage.worker(&[]).await;
            }
            15 => {
                stage.kill_server().await;
                stage.restart_server().await;
            }
            _ => {}
        }
        tell(&stage, &run, id).await;
        // The answer may have been lost: told again, it counts once.
        tell(&stage, &run, id / 2).await;
    }
    stage.completed(&run).await;

    let in_order: Vec<String> = (0..SIGNALS).map(|id| format!("s-{id}")).collect();
    assert_eq!(taken(&stage, &run).await, in_order);
    let Evidence { runs, completed, .. } = stage.close().await;
    assert_eq!((runs, completed), (1, 1));
}

#[tokio::test]
async fn a_run_that_waits_outlives_everything_and_holds_nobody() {
    let stage = stage!(Pace::Fast);
    let worker = stage.worker(&[]).await;
    let run =
        stage.start(&Script::default().then(Move::Signal { channel: "item".into() }).step("ship")).await;
    stage.until(&run, WorkflowStatus::Sleeping).await;
    let waiting = stage.run(&run).await;
    assert_eq!((waiting.reason(), waiting.locked_by.as_str()), (v1::WaitReason::Signal, ""));

    worker.kill().await;
    stage.kill_server().await;
    stage.restart_server().await;
    tell(&stage, &run, 1).await;
    assert_eq!(stage.run(&run).await.status(), WorkflowStatus::Pending, "told, and nobody is there");
    let _worker = stage.worker(&[]).await;

    let ended = stage.completed(&run).await;
    assert_eq!(ended.dispatch_count, 2);
    stage.close().await;
}
