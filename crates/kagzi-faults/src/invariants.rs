//! The guarantees of the design, checked on the file that a killed server left behind.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use crate::{Execution, ExecutionLog, Phase, StepResult};

/// What was found, so that a test can show that something happened at all.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    pub runs: usize,
    pub completed: usize,
    pub results: usize,
    pub executions: usize,
}

/// Numbers of statuses and event kinds, as the database has them.
mod is {
    pub const RUN_CLAIMED: i64 = 2;
    pub const STEP_COMPLETED: i64 = 4;
    pub const SLEEP_SCHEDULED: i64 = 6;
    pub const SLEEP_OVER: i64 = 7;
    pub const RUN_PARKED: i64 = 8;
    pub const LEASE_LOST: i64 = 10;
    pub const RUN_RESUMED: i64 = 12;
    pub const RUN_COMPLETED: i64 = 13;
    pub const RUN_TIMED_OUT: i64 = 16;
    pub const RUN_RETRIED: i64 = 18;
    pub const RUN_REOPENED: i64 = 19;
    pub const HANDLER_STARTED: i64 = 20;
    pub const HANDLER_ENDED: i64 = 21;
    pub const COMPLETED: i64 = 4;
    pub const FAILED: i64 = 5;
}

/// Panics at the first guarantee that is broken. The server must be stopped.
pub fn check_invariants(file: &Path, log: &ExecutionLog, acknowledged: &[String]) -> Evidence {
    let db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE).expect("the file is there");
    let sound: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("SQLite looks");
    assert_eq!(sound, "ok", "the file is sound");

    let runs = runs(&db);
    let events = events(&db);
    let executions = log.read();

    nothing_by_sql(&db);
    for run in runs.values() {
        let history = events.get(&run.id).map_or(&[][..], Vec::as_slice);
        one_end(run, history);
        epochs_rise(run, history);
        one_reason(run);
        gapless(run, history);
        nothing_early(run, history);
    }
    for id in acknowledged {
        assert!(runs.contains_key(id), "I5: the start of run {id} was acknowledged, and it is gone");
    }
    worker_counts_are_true(&db, &runs);
    let results = one_effect(&events, &executions, log);
    let completed = runs.values().filter(|run| run.status == is::COMPLETED).count();
    let began = executions.iter().filter(|execution| execution.phase == Phase::Began).count();
    Evidence { runs: runs.len(), completed, results, executions: began }
}

struct Run {
    id: String,
    status: i64,
    state: Value,
    epoch: i64,
    due_at: Option<i64>,
    sweep_at: Option<i64>,
    lease_worker: Option<String>,
    finished_at: Option<i64>,
    deadline_at: Option<i64>,
}

impl Run {
    fn finished(&self) -> bool {
        (4..=7).contains(&self.status)
    }
}

struct Event {
    seq: i64,
    at: i64,
    kind: i64,
    step: Option<String>,
    detail: Value,
    payload: Option<Vec<u8>>,
}

const RUNS: &str = "
    SELECT lower(hex(run_id)), status, state, epoch, due_at, sweep_at, lower(hex(lease_worker)), finished_at, deadline_at
    FROM runs";

fn runs(db: &Connection) -> HashMap<String, Run> {
    let mut select = db.prepare(RUNS).expect("the schema is known");
    let rows = select.query_map([], |row| {
        let worker: String = row.get::<_, Option<String>>(6)?.unwrap_or_default();
        Ok(Run {
            id: dashed(&row.get::<_, String>(0)?),
            status: row.get(1)?,
            state: json(&row.get::<_, String>(2)?),
            epoch: row.get(3)?,
            due_at: row.get(4)?,
            sweep_at: row.get(5)?,
            lease_worker: (!worker.is_empty()).then(|| dashed(&worker)),
            finished_at: row.get(7)?,
            deadline_at: row.get(8)?,
        })
    });
    rows.expect("runs can be read").map(|run| run.map(|run| (run.id.clone(), run)).unwrap()).collect()
}

const EVENTS: &str = "
    SELECT lower(hex(run_id)), seq, at, kind, step, detail, payload
    FROM events
    ORDER BY run_id, seq";

fn events(db: &Connection) -> HashMap<String, Vec<Event>> {
    let mut select = db.prepare(EVENTS).expect("the schema is known");
    let rows = select.query_map([], |row| {
        let event = Event {
            seq: row.get(1)?,
            at: row.get(2)?,
            kind: row.get(3)?,
            step: row.get(4)?,
            detail: json(&row.get::<_, String>(5)?),
            payload: row.get(6)?,
        };
        Ok((dashed(&row.get::<_, String>(0)?), event))
    });
    let mut by_run: HashMap<String, Vec<Event>> = HashMap::new();
    for row in rows.expect("events can be read") {
        let (run, event) = row.unwrap();
        by_run.entry(run).or_default().push(event);
    }
    by_run
}

/// Rows that must not exist, found by the database itself.
fn nothing_by_sql(db: &Connection) {
    let none = |claim: &str, sql: &str| {
        let found: i64 = db.query_row(sql, [], |row| row.get(0)).expect("the schema is known");
        assert_eq!(found, 0, "{claim}");
    };
    none(
        "I2: a step has two recorded results",
        "SELECT count(*) FROM
            (SELECT 1 FROM events WHERE kind = 4 GROUP BY run_id, step HAVING count(*) > 1)",
    );
    none(
        "two runs share a business id",
        "SELECT count(*) FROM
            (SELECT 1 FROM runs WHERE business_id IS NOT NULL
             GROUP BY namespace_id, business_id HAVING count(*) > 1)",
    );
    none(
        "an event belongs to no run",
        "SELECT count(*) FROM events WHERE run_id NOT IN (SELECT run_id FROM runs)",
    );
    none(
        "I4: a run is leased to a worker that is not registered or has left",
        "SELECT count(*) FROM runs
         LEFT JOIN workers ON workers.worker_id = runs.lease_worker
         WHERE runs.lease_worker IS NOT NULL AND (workers.worker_id IS NULL OR workers.status = 3)",
    );
}

/// I1: one end, nothing after it but news of its failure handler, and the status says the same. Only an operator
/// can reopen a run; then it has one more end.
fn one_end(run: &Run, history: &[Event]) {
    let mut end: Option<&Event> = None;
    for event in history {
        match event.kind {
            is::RUN_COMPLETED..=is::RUN_TIMED_OUT => {
                assert!(end.is_none(), "I1: run {} ended twice", run.id);
                end = Some(event);
            }
            is::RUN_REOPENED => end = None,
            is::HANDLER_STARTED | is::HANDLER_ENDED => {}
            kind => assert!(end.is_none(), "I1, I8: run {} went on after its end with {kind}", run.id),
        }
    }
    assert_eq!(end.is_some(), run.finished(), "I1: run {} and its history disagree", run.id);
    assert_eq!(end.map(|end| end.at), run.finished_at, "I1: run {}", run.id);
    // Statuses 4..=7 and kinds 13..=16 are in the same order: completed, failed, cancelled, timed out.
    let status = end.map(|end| end.kind - is::RUN_COMPLETED + is::COMPLETED);
    assert!(status.is_none_or(|status| status == run.status), "I1: run {} ended otherwise", run.id);
}

/// I3: every claim has a higher epoch than the one before, and the row has the last.
fn epochs_rise(run: &Run, history: &[Event]) {
    let claims = history.iter().filter(|event| event.kind == is::RUN_CLAIMED);
    let mut last = 0;
    for claim in claims {
        let epoch = claim.detail["epoch"].as_i64().expect("a claim has an epoch");
        assert!(epoch > last, "I3: run {} was claimed at epoch {epoch} after {last}", run.id);
        last = epoch;
    }
    assert_eq!(run.epoch, last, "I3: run {}", run.id);
}

/// I4: the state names one reason, and every column that is derived from it agrees.
fn one_reason(run: &Run) {
    let name = run.state["is"].as_str().expect("a state has a name");
    let time = |field: &str| run.state[field].as_i64();
    let (status, due_at) = match name {
        "ready" => (1, time("since")),
        "retry" => (1, time("at")),
        "leased" => (2, None),
        "timer" => (3, time("at")),
        "paused" => (8, None),
        "completed" => (4, None),
        "failed" => (5, None),
        "cancelled" => (6, None),
        "timed_out" => (7, None),
        other => panic!("I4: run {} has the unknown state {other}", run.id),
    };
    assert_eq!(run.status, status, "I4: run {} is {name}", run.id);
    assert_eq!(run.due_at, due_at, "I4: run {} is {name}", run.id);
    let due_must = ["ready", "retry", "timer"].contains(&name);
    assert_eq!(run.due_at.is_some(), due_must, "I4: run {} is {name}", run.id);
    let worker = (name == "leased").then(|| run.state["worker"].as_str().expect("a lease has a worker"));
    assert_eq!(run.lease_worker.as_deref(), worker, "I4: run {} is {name}", run.id);
    // Only a lease has these two.
    let wakes = [time("until"), time("step_timeout_at"), run.deadline_at];
    let sweep_at = if run.finished() { None } else { wakes.into_iter().flatten().min() };
    assert_eq!(run.sweep_at, sweep_at, "I4: run {} is {name}", run.id);
}

/// I11: 1, 2, 3, … and the first is the start.
fn gapless(run: &Run, history: &[Event]) {
    assert!(!history.is_empty(), "I11: run {} has no history", run.id);
    for (event, expected) in history.iter().zip(1..) {
        assert_eq!(event.seq, expected, "I11: run {} has a gap", run.id);
    }
    assert_eq!(history[0].kind, 1, "I11: run {} begins with its start", run.id);
}

/// I6: no sleep ends and no retry begins before its time.
fn nothing_early(run: &Run, history: &[Event]) {
    let mut not_before = 0;
    let mut sleeps = HashMap::new();
    for event in history {
        let time = |field: &str| event.detail[field].as_i64().unwrap_or(0);
        match event.kind {
            is::SLEEP_SCHEDULED => drop(sleeps.insert(event.step.clone(), time("until"))),
            is::SLEEP_OVER => assert!(event.at >= sleeps[&event.step], "I6: run {} woke early", run.id),
            is::RUN_PARKED => not_before = time("due_at"),
            is::LEASE_LOST => not_before = time("retry_at"),
            is::RUN_RETRIED => not_before = time("at"),
            is::RUN_RESUMED => not_before = 0,
            is::RUN_CLAIMED => {
                assert!(event.at >= not_before, "I6: run {} was claimed early", run.id);
                for step in event.detail["slept"].as_array().into_iter().flatten() {
                    let until = sleeps[&step.as_str().map(str::to_owned)];
                    assert!(event.at >= until, "I6: run {} woke early", run.id);
                }
            }
            _ => {}
        }
    }
}

/// What workers are credited with is what their runs came to, no more after a crash and no less.
fn worker_counts_are_true(db: &Connection, runs: &HashMap<String, Run>) {
    let sum = |column: &str| -> i64 {
        let sql = format!("SELECT coalesce(sum({column}), 0) FROM workers");
        db.query_row(&sql, [], |row| row.get(0)).expect("the schema is known")
    };
    let count = |status: i64| runs.values().filter(|run| run.status == status).count() as i64;
    assert_eq!(sum("completed_total"), count(is::COMPLETED), "workers' completed_total");
    assert_eq!(sum("failed_total"), count(is::FAILED), "workers' failed_total");
}

/// I12: one key per step, at least one execution per recorded result, and the result is one that was returned.
fn one_effect(events: &HashMap<String, Vec<Event>>, executions: &[Execution], log: &ExecutionLog) -> usize {
    let mut keys: HashMap<(&str, &str), &str> = HashMap::new();
    let mut effects: HashMap<&str, usize> = HashMap::new();
    for execution in executions {
        let step = (execution.run.as_str(), execution.step.as_str());
        let key = keys.entry(step).or_insert(&execution.key);
        assert_eq!(*key, execution.key, "I12: {step:?} was executed under two keys");
        if execution.phase == Phase::Effect {
            *effects.entry(&execution.key).or_default() += 1;
        }
    }
    let distinct: HashSet<_> = keys.values().collect();
    assert_eq!(distinct.len(), keys.len(), "I12: two steps share a key");
    assert!(effects.values().all(|count| *count == 1), "I12: an effect happened twice");

    let returned: HashMap<&str, &Execution> = executions
        .iter()
        .filter(|execution| execution.phase == Phase::Ended)
        .map(|execution| (execution.nonce.as_str(), execution))
        .collect();
    let mut results = 0;
    for (run, history) in events {
        for event in history.iter().filter(|event| event.kind == is::STEP_COMPLETED) {
            let payload = event.payload.as_deref().unwrap_or_default();
            // Results of workers driven by hand are not in the log.
            let Ok(result) = serde_json::from_slice::<StepResult>(payload) else { continue };
            let execution = returned.get(result.nonce.as_str()).expect("I12: a result that nobody returned");
            assert_eq!((&execution.run, Some(&execution.step)), (run, event.step.as_ref()), "I12");
            assert!(log.sank(&execution.key), "I12: a result without an effect");
            results += 1;
        }
    }
    results
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("states and details are JSON")
}

/// An id as the API writes it.
fn dashed(hex: &str) -> String {
    uuid::Uuid::try_parse(hex).expect("ids are UUIDs").to_string()
}
