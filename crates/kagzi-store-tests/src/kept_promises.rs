//! Promises, their signs of life and published values outlive a restart.

use kagzi_model::{Author, EventKind, Payload, Reply, RunKey, Signalled, Waited, act};

use crate::{Stage, replay_law::park, signals::wait, stage::step};

pub async fn a_promise_and_a_value_are_still_there_after_a_restart(mut stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let made = act::MakePromise {
        step: step("~promise/payment"),
        name: "payment".into(),
        token_hash: "the hash".into(),
        secret: Payload::new(&b"the secret"[..]),
        timeout_ms: None,
        heartbeat_ms: Some(10_000),
    };
    stage.ok(lease.report(made)).await;
    let value = act::SetValue { name: "stage".into(), number: 3, value: Payload::new(&b"paying"[..]) };
    stage.ok(lease.report(value.clone())).await;
    stage.ok(wait(&lease, "payment", "~promise/payment", None)).await;
    stage.ok(park(&lease, &["payment"])).await;
    stage.pass_ms(9_000);
    let name = || "payment".into();
    let order = |stage: &Stage| RunKey::new(stage.namespace.clone(), run);
    let beat = act::BeatPromise { name: name(), token_hash: None };
    stage.ok(order(&stage).order(Author::new("bank", ""), beat)).await;
    let due = stage.waits(run).await;

    stage.reopen().await;

    assert_eq!(stage.waits(run).await, due, "the sign of life counts");
    let mut heir = stage.stand_by(1).await;
    let (payload, token_hash) = (Payload::new(&b"paid"[..]), Some("the hash".into()));
    let complete = act::CompletePromise { name: name(), token_hash, payload, failure: None };
    let told = stage.ok(order(&stage).order(Author::new("bank", ""), complete)).await;
    assert_eq!(told, Reply::Signalled(Signalled { already: false }));
    let lease = heir.next().await.lease();
    let taken = stage.ok(wait(&lease, "payment", "~promise/payment", None)).await;
    assert!(matches!(taken, Reply::Waited(Waited::Taken { .. })), "{taken:?}");
    stage.ok(lease.report(value)).await;
    let set = |kind: &EventKind| matches!(kind, EventKind::ValueSet { .. });
    assert_eq!(stage.events(run).await.iter().filter(|event| set(&event.kind)).count(), 1);
}
