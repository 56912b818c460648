//! The checks themselves, on PostgreSQL: each must notice the damage that it is there for.

use kagzi_faults::{Fate, Move, Pace, Script, Stage, change_flat, check_invariants_on, stage, start_request};
use kagzi_proto::v1::{self, StartWorkflowRequest, WorkflowStatus, run_ref::Ref};
use kagzi_store_postgres::fixture;

use crate::turn;

/// What must be noticed, and the damage.
const DAMAGE: &[(&str, &str)] = &[
    ("I1", "UPDATE runs SET status = 5, state = '{\"is\":\"failed\"}' WHERE status = 4"),
    (
        "I1",
        "INSERT INTO flat_events (namespace_id, run_id, seq, at, kind, detail)
         SELECT namespace_id, run_id, seq + 1, at, 15, '{\"event\":\"run_cancelled\",\"reason\":\"\"}'
           FROM flat_events WHERE kind = 13",
    ),
    (
        "I2",
        "INSERT INTO flat_events (namespace_id, run_id, seq, at, kind, step, detail, payload)
         SELECT namespace_id, run_id, seq + 1000, at, kind, step, detail, payload
           FROM flat_events WHERE kind = 4",
    ),
    ("I3", "UPDATE runs SET epoch = epoch + 1 WHERE status = 4"),
    ("I4", "UPDATE runs SET due_at = NULL WHERE status = 3"),
    ("I4", "UPDATE runs SET lease_worker = gen_random_uuid() WHERE status = 1"),
    (
        "I5",
        "DELETE FROM flat_events USING runs
             WHERE flat_events.run_id = runs.run_id AND workflow_type = 'unknown';
            DELETE FROM runs WHERE workflow_type = 'unknown'",
    ),
    ("I6", "UPDATE flat_events SET at = at - 50000 WHERE kind = 2 AND detail LIKE '%slept%'"),
    (
        "I7",
        "UPDATE workers SET max_concurrent = 0;
         UPDATE runs SET lease_worker = (SELECT worker_id FROM workers) WHERE status = 1",
    ),
    (
        "I9",
        "DELETE FROM flat_events USING runs
             WHERE flat_events.run_id = runs.run_id AND workflow_type = 'handler';
            DELETE FROM runs WHERE workflow_type = 'handler'",
    ),
    (
        "I11",
        "DELETE FROM flat_events USING runs
              WHERE flat_events.run_id = runs.run_id AND kind = 6 AND status = 3",
    ),
    (
        "I12",
        "UPDATE flat_events
            SET payload = convert_to(replace(convert_from(payload, 'UTF8'), '\"nonce\":\"', '\"nonce\":\"x'),
                                     'UTF8')
          WHERE kind = 4",
    ),
    (
        "I14 a signal counts once",
        "UPDATE flat_events SET detail = replace(detail, '\"id\":\"s-2\"', '\"id\":\"s-1\"') WHERE kind = 24",
    ),
    (
        "I14 a signal is taken once",
        "UPDATE flat_events SET detail = replace(detail, '\"id\":\"s-2\"', '\"id\":\"s-1\"') WHERE kind = 26",
    ),
    (
        "I15 a run that waits for somebody has an open wait",
        "UPDATE runs SET state = replace(state, '\"step\":\"item\"', '\"step\":\"other\"')
          WHERE state LIKE '%\"is\":\"signal\"%'",
    ),
    (
        "I15 nothing lies there",
        "INSERT INTO flat_events (namespace_id, run_id, seq, at, kind, detail)
         SELECT namespace_id, run_id, max(seq) + 1, max(at), 24,
                '{\"event\":\"signal_received\",\"channel\":\"item\",\"id\":\"lost\"}'
           FROM flat_events
          WHERE run_id IN (SELECT run_id FROM runs WHERE state LIKE '%\"is\":\"signal\"%')
          GROUP BY namespace_id, run_id",
    ),
    (
        "I16 a step has one child",
        "UPDATE flat_events SET detail = jsonb_set(detail::jsonb, '{step}', '\"same\"')::text
          WHERE kind = 28",
    ),
    (
        "I16",
        "UPDATE runs SET options = replace(options, '\"parent\"', '\"nobody\"')
          WHERE options LIKE '%parent%'",
    ),
    (
        "was not told",
        "UPDATE flat_events SET detail = replace(detail, '~child/0', '~child/f') WHERE kind IN (24, 26)",
    ),
    (
        "I17",
        "UPDATE flat_events SET detail = replace(detail, '\"close\":\"abandon\"', '\"close\":\"cancel\"')
          WHERE kind = 28;
         UPDATE runs SET options = replace(options, '\"close\":\"abandon\"', '\"close\":\"cancel\"')",
    ),
    ("completed_total", "UPDATE workers SET completed_total = completed_total + 1000"),
];

async fn signal(stage: &Stage, run: &str, id: &str) {
    let request = v1::SignalWorkflowRunRequest {
        run: Some(v1::RunRef { r#ref: Some(Ref::RunId(run.to_owned())) }),
        channel: "item".into(),
        signal_id: id.into(),
        payload: Some(v1::Payload { data: "1".into(), ..Default::default() }),
        ..Default::default()
    };
    stage.workflows().signal_workflow_run(request).await.expect("a living run takes it");
}

#[tokio::test]
async fn every_check_notices_its_damage_on_postgres() {
    let _turn = turn().await;
    let url = fixture::database().await;
    let stage = stage!(Pace::Steady, url.clone());
    let worker = stage.worker(&[]).await;
    let completed = stage.start(&Script::steps(&["a"]).then(Move::Sleep { ms: 60 }).step("b")).await;
    let sleeping = stage.start(&Script::default().then(Move::Sleep { ms: 3_600_000 })).await;
    let queued = stage.start_with(start_request("unknown", &Script::default())).await.unwrap().run_id;
    let handled = StartWorkflowRequest {
        on_failure_workflow: "handler".into(),
        ..start_request("script", &Script::default().then(Move::Panic { message: "no".into() }))
    };
    let failing = stage.start_with(handled).await.unwrap().run_id;
    let asleep = Script::default().then(Move::Sleep { ms: 3_600_000 });
    let abandoned = Move::Children { count: 1, script: asleep, fate: Fate::Abandoned };
    let awaited = Move::Children { count: 2, script: Script::steps(&["a"]), fate: Fate::Awaited };
    let parent = stage.start(&Script::default().then(abandoned).then(awaited)).await;
    stage.completed(&parent).await;
    let waits = || Move::Signal { channel: "item".into() };
    let told = stage.start(&Script::default().gated("told").then(waits()).then(waits())).await;
    stage.began(&told, "told", 1).await;
    for id in ["s-1", "s-2"] {
        signal(&stage, &told, id).await;
    }
    stage.log.open_gate("told");
    stage.completed(&told).await;
    let waiting = stage.start(&Script::default().then(waits())).await;
    stage.until(&waiting, WorkflowStatus::Sleeping).await;
    stage.completed(&completed).await;
    stage.until(&sleeping, WorkflowStatus::Sleeping).await;
    stage.until(&failing, WorkflowStatus::Failed).await;
    stage.kill_server().await;
    worker.kill().await;

    let acknowledged = [queued];
    check_invariants_on(&url, &stage.log, &acknowledged).await;
    for (claim, damage) in DAMAGE {
        let copy = fixture::copy(&url).await;
        change_flat(&copy, damage).await;

        let (log, acknowledged) = (stage.log.clone(), acknowledged.clone());
        let check = tokio::spawn(async move { check_invariants_on(&copy, &log, &acknowledged).await });
        let noticed = check.await.expect_err(damage).into_panic();

        let message = noticed.downcast_ref::<String>().cloned().unwrap_or_default();
        assert!(message.contains(claim), "{damage}\nwas noticed as: {message}");
    }
    stage.close().await;
}
