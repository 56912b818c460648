//! The hot statements find their rows by the index made for them, although nearly all runs are finished.

mod stage;

use kagzi_model::{Name, Status, Timestamp};
use kagzi_store::{Cursor, Direction, OrderBy, PageRequest, RunFilter, RunOrder, TimeRange};
use kagzi_store_postgres::{PostgresOptions, fixture, run_listing, statements};
use stage::Server;

/// Twenty thousand finished runs, two hundred that wait and two hundred that are leased, with four rows of
/// events each.
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

INSERT INTO kagzi.events (namespace_id, run_id, first_seq, at, kinds, detail)
SELECT namespace_id, run_id, seq, seq, '\\x04', '\\x0100'
  FROM kagzi.runs, generate_series(1, 4) AS seq;

INSERT INTO kagzi.workers (namespace_id, worker_id, task_queue, hostname, pid, version, workflow_types, \
labels,
                           max_concurrent, status, completed_total, failed_total, registered_at, heartbeat_at)
SELECT 'default', gen_random_uuid(), 'orders', 'h', 1, '1', '[]', '{}', 1, CASE WHEN n <= 50 THEN 1 ELSE 3 \
END,
       0, 0, n, n
  FROM generate_series(1, 5000) AS n;

INSERT INTO kagzi.schedules (namespace_id, schedule_id, uid, version, workflow_type, plan, state, paused, \
next_at,
                             created_at, updated_at, input, content_type)
SELECT 'default', 'nightly-' || n, gen_random_uuid(), 1, 'report', '{}', '{}', false,
       CASE WHEN n <= 4000 THEN n END, n, n, '', ''
  FROM generate_series(1, 5000) AS n;

INSERT INTO kagzi.namespaces (namespace_id, description, defaults, created_at, updated_at, version)
SELECT 'tenant-' || n, '', '{}', n, n, 1
  FROM generate_series(1, 5000) AS n;

INSERT INTO kagzi.nouns (namespace_id, kind, noun_id, version, body, created_at, updated_at)
SELECT 'default', 'hint', 'hint-' || n, 1, '{}', n, n
  FROM generate_series(1, 5000) AS n;

ANALYZE kagzi.runs, kagzi.events, kagzi.workers, kagzi.schedules, kagzi.namespaces, \
kagzi.nouns;
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
    ("LOAD_WORKERS", &["workers_by_id"]),
    ("STILL_LEASED", &["runs_pkey"]),
    ("STAND_BY", &["workers_by_id"]),
    ("STANDING", &["workers_by_id"]),
    ("GUARD_WORKERS", &["workers_by_id"]),
    ("HANDLER_QUEUE", &["workers_handling"]),
    ("LEASED_BY", &["runs_leased"]),
    ("STALE_WORKERS", &["workers_alive"]),
    ("UPDATE_RUNS", &["runs_pkey"]),
    ("UNNAME_RUNS", &["runs_pkey"]),
    ("COUNT_DUE", &["runs_due"]),
    ("RETIRABLE", &["runs_finished", "namespaces_pkey"]),
    ("RUN", &["runs_pkey", "events_pkey"]),
    ("RUN_BY_BUSINESS", &["runs_business"]),
    ("RUNS_BY_PREFIX", &["runs_pkey"]),
    ("HOLDING", &["events_pkey"]),
    ("PAYLOADS_OF_ROWS", &["events_pkey"]),
    ("WORKER", &["runs_leased"]),
    ("WORKERS_BY_PREFIX", &[]),
    ("LOAD_SCHEDULE", &["schedules_pkey"]),
    ("LOAD_SCHEDULES", &["schedules_pkey"]),
    ("CLAIM_SCHEDULE", &["schedules_pkey"]),
    ("DUE_SCHEDULES", &["schedules_due"]),
    ("NEXT_SCHEDULE", &["schedules_due"]),
    ("UPDATE_SCHEDULES", &["schedules_pkey"]),
    ("LOAD_NOUN", &["nouns_pkey"]),
    ("NOUNS_BEHIND", &["nouns_pkey"]),
    ("NOUNS_BEFORE", &["nouns_pkey"]),
    ("UPDATE_NOUNS", &["nouns_pkey"]),
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

    for (name, indexes) in PLANS {
        let (_, sql) = statements().find(|(known, _)| known == name).expect("a statement of ours");
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
    let (_, due) = statements().find(|(name, _)| *name == "DUE").unwrap();

    let explain = format!(
        "PREPARE due AS {due};
         EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF)
         EXECUTE due ('{{default}}', '{{orders}}', '{{charge}}', '{{10}}', 1000, '{{}}', '{{0}}')"
    );
    let plan = fixture::sql(&url, &explain).await;

    let hit = plan.iter().find_map(|line| line.split("shared hit=").nth(1)).expect("buffers are counted");
    let pages: u32 = hit.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
    assert!(pages < 60, "{}", plan.join("\n"));
}

/// What the listings are asked over: most runs completed, some failed, a few of a rare type, some labelled.
const LISTED: &str = "
UPDATE kagzi.runs SET finished_at = created_at + 5 WHERE status = 4;
UPDATE kagzi.runs SET status = 5, error_code = 'BROKEN' WHERE status = 4 AND created_at % 100 = 0;
UPDATE kagzi.runs SET workflow_type = 'refund', task_queue = 'slow' WHERE created_at % 1000 = 1;
UPDATE kagzi.runs SET schedule_id = 'nightly' WHERE created_at % 10 = 3;
INSERT INTO kagzi.run_labels (namespace_id, run_id, name, value, created_at, finished_at)
SELECT namespace_id, run_id, 'tenant', 't-' || created_at % 50, created_at, finished_at FROM kagzi.runs;
VACUUM ANALYZE kagzi.runs;
ANALYZE kagzi.run_labels;
";

async fn explain(url: &str, statement: &kagzi_store::listing::Statement) -> String {
    use kagzi_store::listing::Value;
    let values = statement.bind.iter().map(|value| match value {
        Value::Text(name) => format!("'{name}'"),
        Value::Integer(number) => number.to_string(),
        Value::Id(id) => format!("'{id}'"),
    });
    let values = values.collect::<Vec<_>>().join(", ");
    let explain = format!(
        "SET plan_cache_mode = force_custom_plan; PREPARE listing AS {};
         EXPLAIN (COSTS OFF) EXECUTE listing ({values})",
        statement.sql
    );
    fixture::sql(url, &explain).await.join("\n")
}

#[tokio::test]
async fn every_filter_of_a_listing_has_an_index_behind_it() {
    let url = fixture::database().await;
    Server::open(&url, PostgresOptions::default()).await.store_closed().await;
    fixture::sql(&url, ROWS).await;
    for statement in LISTED.split(';').filter(|text| !text.trim().is_empty()) {
        fixture::sql(&url, statement).await;
    }
    let all = RunFilter::default;
    let some = |name: &str| Some(Name::from(name));
    let status = |status| RunFilter { statuses: vec![status], ..all() };
    let labels = vec![("tenant".into(), "t-7".into())];
    let range = TimeRange { from: Some(Timestamp(20_380)), to: None };
    let cases = [
        ("none", all(), ["runs_listed", "runs_finished"]),
        ("created", RunFilter { created: range, ..all() }, ["runs_listed", "runs_"]),
        ("finished", RunFilter { finished: range, ..all() }, ["runs_", "runs_finished"]),
        ("type", RunFilter { workflow_type: some("refund"), ..all() }, ["runs_listed", "runs_finished"]),
        ("queue", RunFilter { task_queue: some("slow"), ..all() }, ["runs_listed", "runs_finished"]),
        ("failed", status(Status::Failed), ["runs_by_status", "runs_ended_badly"]),
        ("completed", status(Status::Completed), ["runs_listed", "runs_finished"]),
        (
            "error code",
            RunFilter { error_code: some("BROKEN"), ..all() },
            ["runs_error_code", "runs_error_code"],
        ),
        (
            "schedule",
            RunFilter { schedule: some("nightly"), ..all() },
            ["runs_scheduled", "runs_scheduled_finished"],
        ),
        ("label", RunFilter { labels, ..all() }, ["run_labels_", "run_labels_"]),
        (
            "business id",
            RunFilter { business_id: some("order-7"), ..all() },
            ["runs_business", "runs_business"],
        ),
        (
            "prefix",
            RunFilter { business_id_prefix: some("order-77"), ..all() },
            ["runs_business", "runs_business"],
        ),
    ];

    for (name, filter, indexes) in cases {
        for (by, index) in [OrderBy::CreatedAt, OrderBy::FinishedAt].into_iter().zip(indexes) {
            let filter = RunFilter { order: RunOrder { by, ascending: false }, ..filter.clone() };
            let listing = run_listing(&"default".into(), &filter);
            let from = Some(Cursor { at: Timestamp(10_000), id: uuid::Uuid::nil() });
            let page = PageRequest { from, direction: Direction::Next, limit: 50 };
            let plan = explain(&url, &listing.rows(&page)).await;

            assert!(plan.contains(index), "{name} by {by:?} is not led by {index}:\n{plan}");
            assert!(!plan.contains("Seq Scan"), "{name} by {by:?} reads a whole table:\n{plan}");
        }
    }
    let running = run_listing(&"default".into(), &status(Status::Running));
    let plan =
        explain(&url, &running.rows(&PageRequest { from: None, direction: Direction::Next, limit: 50 }))
            .await;
    assert!(plan.contains("runs_leased"), "{plan}");
}
