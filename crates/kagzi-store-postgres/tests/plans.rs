//! The hot statements find their rows by the index made for them, although nearly all runs are finished.

mod stage;

use kagzi_store_postgres::{
    FIND_STATEMENTS, PostgresOptions, READ_STATEMENTS, RULE_READ_STATEMENTS, RULE_STATEMENTS,
    SCHEDULE_STATEMENTS, WRITE_STATEMENTS, fixture,
};
use stage::Server;

/// Twenty thousand finished runs, two hundred that wait and two hundred that are leased, with four events each.
const ROWS: &str = "
INSERT INTO kagzi.runs (namespace_id, run_id, business_id, workflow_type, task_queue, status, state, version,
                        epoch, due_at, sweep_at, lease_worker, attempts, dispatch_count, crashes, created_at,
                        options)
SELECT 'default', gen_random_uuid(), 'order-' || n, 'charge', 'orders',
       CASE WHEN n <= 200 THEN 1 WHEN n <= 400 THEN 2 ELSE 4 END, '{}', 1, 0,
       CASE WHEN n <= 200 THEN n END,
       CASE WHEN n BETWEEN 201 AND 400 THEN n END,
       CASE WHEN n BETWEEN 201 AND 400 THEN gen_random_uuid() END,
       0, 0, 0, n, '{}'
  FROM generate_series(1, 20400) AS n;

INSERT INTO kagzi.events (namespace_id, run_id, seq, at, kind, step, detail)
SELECT namespace_id, run_id, seq, seq, CASE WHEN seq = 3 THEN 4 ELSE seq END, CASE WHEN seq = 3 THEN 'pay' END, '{}'
  FROM kagzi.runs, generate_series(1, 4) AS seq;

INSERT INTO kagzi.workers (namespace_id, worker_id, task_queue, hostname, pid, version, workflow_types, labels,
                           max_concurrent, status, completed_total, failed_total, registered_at, heartbeat_at)
SELECT 'default', gen_random_uuid(), 'orders', 'h', 1, '1', '[]', '{}', 1, CASE WHEN n <= 50 THEN 1 ELSE 3 END,
       0, 0, n, n
  FROM generate_series(1, 5000) AS n;

INSERT INTO kagzi.schedules (namespace_id, schedule_id, uid, version, workflow_type, plan, state, paused, next_at,
                             created_at, updated_at, input, content_type)
SELECT 'default', 'nightly-' || n, gen_random_uuid(), 1, 'report', '{}', '{}', false,
       CASE WHEN n <= 4000 THEN n END, n, n, '', ''
  FROM generate_series(1, 5000) AS n;

ANALYZE kagzi.runs, kagzi.events, kagzi.workers, kagzi.schedules;
";

/// The statement, and the indexes that its plan must use.
const PLANS: &[(&str, &[&str])] = &[
    ("LOAD_RUNS", &["runs_pkey"]),
    ("LOAD_EVENTS", &["events_pkey"]),
    ("FIND_BUSINESS", &["runs_business", "events_pkey"]),
    ("DUE", &["runs_due"]),
    ("NEXT_DUE", &["runs_due"]),
    ("SWEEP_DUE", &["runs_sweep"]),
    ("NEXT_SWEEP", &["runs_sweep"]),
    ("LOAD_WORKER", &["workers_by_id"]),
    ("STAND_BY", &["workers_by_id"]),
    ("STANDING", &["workers_by_id"]),
    ("GUARD_WORKERS", &["workers_by_id"]),
    ("HANDLER_QUEUE", &["workers_listed"]),
    ("LEASED_BY", &["runs_leased"]),
    ("STALE_WORKERS", &["workers_alive"]),
    ("UPDATE_RUNS", &["runs_pkey"]),
    ("COUNT_DUE", &["runs_due"]),
    ("RUN", &["runs_pkey", "events_pkey"]),
    ("RUN_BY_BUSINESS", &["runs_business"]),
    ("RUNS_BY_PREFIX", &["runs_pkey"]),
    ("EVENTS", &["events_pkey"]),
    ("WORKER", &["runs_leased"]),
    ("WORKERS_BY_PREFIX", &[]),
    ("LOAD_SCHEDULE", &["schedules_pkey"]),
    ("CLAIM_SCHEDULE", &["schedules_pkey"]),
    ("DUE_SCHEDULES", &["schedules_due"]),
    ("NEXT_SCHEDULE", &["schedules_due"]),
    ("UPDATE_SCHEDULES", &["schedules_pkey"]),
    ("LEASED_IN_NAMESPACE", &["runs_leased_behind"]),
    ("LEASED_IN_QUEUE", &["runs_leased_behind"]),
    ("LEASED_OF_TYPE", &["runs_leased_behind"]),
    ("DEPTHS", &["runs_due", "runs_leased_behind"]),
];

#[tokio::test]
async fn hot_statements_use_their_index() {
    let url = fixture::database().await;
    Server::open(&url, PostgresOptions::default()).await.store_closed().await;
    fixture::sql(&url, ROWS).await;
    let statements = [
        FIND_STATEMENTS,
        WRITE_STATEMENTS,
        READ_STATEMENTS,
        SCHEDULE_STATEMENTS,
        RULE_STATEMENTS,
        RULE_READ_STATEMENTS,
    ]
    .concat();

    for (name, indexes) in PLANS {
        let (_, sql) = statements.iter().find(|(known, _)| known == name).expect("a statement of ours");
        let values = vec!["NULL"; (1..=23).filter(|n| sql.contains(&format!("${n}"))).count()].join(", ");
        let call = if values.is_empty() { String::new() } else { format!("({values})") };
        let explain = format!(
            "SET plan_cache_mode = force_generic_plan; PREPARE {name} AS {sql};
             EXPLAIN (COSTS OFF) EXECUTE {name}{call}"
        );
        let plan = fixture::sql(&url, &explain).await.join("\n");

        for index in *indexes {
            assert!(plan.contains(index), "{name} does not use {index}:\n{plan}");
        }
        assert!(!plan.contains("Seq Scan"), "{name} reads a whole table:\n{plan}");
    }
}

#[tokio::test]
async fn a_claim_touches_no_more_pages_among_finished_runs() {
    let url = fixture::database().await;
    Server::open(&url, PostgresOptions::default()).await.store_closed().await;
    fixture::sql(&url, ROWS).await;
    let (_, due) = FIND_STATEMENTS.iter().find(|(name, _)| *name == "DUE").unwrap();

    let explain = format!(
        "PREPARE due AS {due};
         EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF)
         EXECUTE due ('default', 'orders', 'charge', 1000, 10)"
    );
    let plan = fixture::sql(&url, &explain).await;

    let hit = plan.iter().find_map(|line| line.split("shared hit=").nth(1)).expect("buffers are counted");
    let pages: u32 = hit.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
    assert!(pages < 60, "{}", plan.join("\n"));
}
