//! The checks themselves: each must notice the damage that it is there for.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kagzi_faults::{
    Fate, Move, Pace, Script, Stage, StepPlan, check_invariants, flatten, stage, start_request, unflatten,
};
use kagzi_proto::v1::{self, WorkflowStatus, run_ref::Ref};
use rusqlite::Connection;

/// What must be noticed, and the damage.
const DAMAGE: [(&str, &str); 24] = [
    ("I1", "UPDATE runs SET status = 5, state = '{\"is\":\"failed\"}' WHERE status = 4"),
    (
        "I1",
        "INSERT INTO flat_events
         SELECT run_id, seq + 1, at, 15, step, '{\"event\":\"run_cancelled\",\"reason\":\"\"}', NULL
           FROM flat_events WHERE kind = 13",
    ),
    ("I1", "UPDATE runs SET finished_at = finished_at + 1 WHERE status = 4"),
    (
        "I2",
        "INSERT INTO flat_events
         SELECT run_id, seq + 1000, at, kind, step, detail, payload FROM flat_events WHERE kind = 4",
    ),
    ("I3", "UPDATE runs SET epoch = epoch + 1 WHERE status = 4"),
    ("I3", "UPDATE flat_events SET detail = replace(detail, '\"epoch\":2', '\"epoch\":1') WHERE kind = 2"),
    ("I4", "UPDATE runs SET due_at = NULL WHERE status = 3"),
    ("I4", "UPDATE runs SET due_at = due_at + 1 WHERE status = 1"),
    ("I4", "UPDATE runs SET lease_worker = (SELECT worker_id FROM workers) WHERE status = 1"),
    (
        "I5",
        "DELETE FROM runs WHERE status = 1;
         DELETE FROM flat_events WHERE run_id NOT IN (SELECT run_id FROM runs)",
    ),
    ("I6", "UPDATE flat_events SET at = at - 60000000 WHERE kind = 2 AND detail LIKE '%slept%'"),
    (
        "I9",
        "UPDATE runs SET options = replace(options, 'handler_of', 'nobody') WHERE options LIKE \
         '%handler_of%'",
    ),
    (
        "I9",
        "UPDATE flat_events SET detail = replace(detail, '\"handler\":\"0', '\"handler\":\"f')
          WHERE kind = 20",
    ),
    (
        "I11",
        "DELETE FROM flat_events WHERE kind = 6 AND run_id IN (SELECT run_id FROM runs WHERE status = 3)",
    ),
    (
        "I12",
        "UPDATE flat_events
            SET payload = CAST(replace(CAST(payload AS TEXT), '\"nonce\":\"', '\"nonce\":\"x') AS BLOB)
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
        "INSERT INTO flat_events 
         SELECT run_id, max(seq) + 1, max(at), 24, NULL,
                '{\"event\":\"signal_received\",\"channel\":\"item\",\"id\":\"lost\"}', NULL
           FROM flat_events
          WHERE run_id IN (SELECT run_id FROM runs WHERE state LIKE '%\"is\":\"signal\"%')
          GROUP BY run_id",
    ),
    (
        "I16 a step has one child",
        "UPDATE flat_events SET detail = json_set(detail, '$.step', 'same') WHERE kind = 28",
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
    ("completed_total", "UPDATE workers SET completed_total = completed_total + 1"),
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
async fn every_check_notices_its_damage() {
    let stage = stage!(Pace::Steady);
    let _worker = stage.worker(&["--handler", "handler"]).await;
    let hopeless = StepPlan { name: "x".into(), failures: 9, attempts_max: Some(1), ..StepPlan::default() };
    let mut handled = start_request("script", &Script::default().planned(hopeless));
    handled.on_failure_workflow = "handler".into();
    let failed = stage.start_with(handled).await.unwrap().run_id;
    stage.finished(&failed).await;
    stage.completed(&stage.handler_started(&failed).await.expect("in the same commit")).await;
    let completed = stage.start(&Script::steps(&["a"]).then(Move::Sleep { ms: 60 }).step("b")).await;
    let sleeping = stage.start(&Script::default().then(Move::Sleep { ms: 3_600_000 })).await;
    let queued = stage.start_with(start_request("unknown", &Script::default())).await.unwrap().run_id;
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
    stage.kill_server().await;
    let whole = Connection::open(stage.file()).unwrap();
    whole.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(whole);
    let copy = stage.file().with_extension("damaged");
    let check = || {
        catch_unwind(AssertUnwindSafe(|| check_invariants(&copy, &stage.log, std::slice::from_ref(&queued))))
    };

    std::fs::copy(stage.file(), &copy).unwrap();
    assert!(check().is_ok(), "without damage nothing is found");
    for (claim, damage) in DAMAGE {
        std::fs::copy(stage.file(), &copy).unwrap();
        let db = Connection::open(&copy).unwrap();
        flatten(&db);
        db.execute_batch(damage).unwrap();
        unflatten(&db);
        db.close().unwrap();

        let noticed = check().expect_err(damage);

        let message = noticed.downcast_ref::<String>().cloned().unwrap_or_default();
        assert!(message.contains(claim), "{damage}\nwas noticed as: {message}");
    }
    stage.close().await;
}
