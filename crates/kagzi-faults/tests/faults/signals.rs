//! Signals to a run whose server and workers die: each is taken once, in order, and none is lost.

use futures_util::future::join_all;
use kagzi_faults::{Evidence, Move, Pace, Script, Stage, eventually, eventually_within, stage};
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

const SENDERS: usize = 8;
const FLOOD: usize = 10_000;

/// A run keeps a thousand signals that it has not taken; the next one is refused, and its sender sends it
/// again until there is room. So nobody is told of a delivery that is not kept, and no reader can be drowned.
#[tokio::test]
async fn ten_thousand_signals_at_once_are_each_taken_once_in_the_order_in_which_they_came() {
    let stage = stage!(Pace::Calm);
    let _worker = stage.worker(&[]).await;
    let all = Move::Signals { channel: "item".into(), count: FLOOD };
    let run = stage.start(&Script::default().then(all).step("ship")).await;

    let began = std::time::Instant::now();
    let send = async |sender: usize| {
        for id in (sender..FLOOD).step_by(SENDERS) {
            tell(&stage, &run, id).await;
        }
    };
    join_all((0..SENDERS).map(send)).await;
    let sent = began.elapsed();
    let patience = std::time::Duration::from_secs(300);
    eventually_within(patience, "the run has taken all", async || {
        (stage.run(&run).await.status() == WorkflowStatus::Completed).then_some(())
    })
    .await;
    println!("{FLOOD} signals were sent in {sent:?} and taken after {:?}", began.elapsed());

    let (mut came, mut took) = (Vec::new(), Vec::new());
    for event in stage.whole_history(&run).await {
        let detail: serde_json::Value = serde_json::from_str(&event.detail_json).expect("details are JSON");
        let id = || detail["id"].as_str().expect("a signal has an id").to_owned();
        match event.kind() {
            v1::EventKind::SignalReceived => came.push(id()),
            v1::EventKind::WaitEnded => {
                took.push(id());
                // It came while the run was parked: both in one line.
                if detail["received"].is_null() {
                    came.push(id());
                }
            }
            _ => {}
        }
    }
    assert_eq!(took.len(), FLOOD);
    assert!(took == came, "they are taken in the order in which they came");
    for sender in 0..SENDERS {
        let own = |id: &&String| id[2..].parse::<usize>().is_ok_and(|id| id % SENDERS == sender);
        let in_order = (sender..FLOOD).step_by(SENDERS).map(|id| format!("s-{id}"));
        assert!(took.iter().filter(own).cloned().eq(in_order), "none of sender {sender} is lost or doubled");
    }
    stage.close().await;
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
