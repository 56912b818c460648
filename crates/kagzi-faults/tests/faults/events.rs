//! Events that are published while server and workers die: each reaches every run that waits, once, in order.

use kagzi_faults::{Evidence, Move, Pace, Script, Stage, eventually, stage};
use kagzi_proto::v1;

const EVENTS: usize = 12;
const RUNS: usize = 3;

/// Publishes until the server says that it has it; a repeat is recognised by its id.
async fn publish(stage: &Stage, id: usize) {
    let request = v1::PublishEventRequest {
        topic: "tick".into(),
        event_id: format!("e-{id}"),
        payload: Some(v1::Payload { data: id.to_string().into(), ..Default::default() }),
        ..Default::default()
    };
    eventually("the event is published", async || {
        stage.workflows().publish_event(request.clone()).await.ok()
    })
    .await;
}

/// What the waits of the run took, in order.
async fn taken(stage: &Stage, run: &str) -> Vec<String> {
    let ends = stage.events(run).await.into_iter().filter(|event| event.kind() == v1::EventKind::WaitEnded);
    let id = |event: v1::RunEvent| {
        let detail: serde_json::Value = serde_json::from_str(&event.detail_json).expect("details are JSON");
        detail["id"].as_str().expect("an event has an id").to_owned()
    };
    ends.map(id).collect()
}

#[tokio::test]
async fn every_event_reaches_every_run_once_and_in_order_although_server_and_workers_die() {
    let stage = stage!(Pace::Fast);
    let mut worker = stage.worker(&[]).await;
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        let all = Move::Events { topic: "tick".into(), count: EVENTS };
        runs.push(stage.start(&Script::default().then(all).step("ship")).await);
    }
    // One more, which waits for what never comes: the invariants look at it.
    let idle = stage.start(&Script::default().then(Move::Events { topic: "never".into(), count: 1 })).await;

    for id in 0..EVENTS {
        match id {
            3 => {
                worker.kill().await;
                worker = stage.worker(&[]).await;
            }
            5 | 9 => {
                stage.kill_server().await;
                stage.restart_server().await;
            }
            _ => {}
        }
        publish(&stage, id).await;
        // The answer may have been lost: published again, it counts once.
        publish(&stage, id / 2).await;
    }
    for run in &runs {
        stage.completed(run).await;
    }

    let in_order: Vec<String> = (0..EVENTS).map(|id| format!("e-{id}")).collect();
    for run in &runs {
        assert_eq!(taken(&stage, run).await, in_order);
    }
    assert_eq!(taken(&stage, &idle).await, [""; 0]);
    let Evidence { runs, completed, .. } = stage.close().await;
    assert_eq!((runs, completed), (RUNS + 1, RUNS));
}
