//! Every SQL statement is one that SQLite accepts, and the hot ones use their index.

mod sqlite_file;

use std::sync::Arc;

use kagzi_model::{Name, Status, Timestamp};
use kagzi_store::{
    Cursor, Direction, OrderBy, PageRequest, RunFilter, RunOrder, Silent, SystemClock, TimeRange,
};
use kagzi_store_sqlite::{
    EVENT_STATEMENTS, READ_STATEMENTS, RULE_STATEMENTS, STATEMENTS, SqliteStore, WORKER_STATEMENTS,
    run_listing,
};
use rusqlite::Connection;
use sqlite_file::SqliteFile;

/// A connection to a database that the store itself has migrated.
async fn migrated(file: &SqliteFile) -> Connection {
    let store = SqliteStore::open(&file.path(), Arc::new(SystemClock::new()), Arc::new(Silent)).unwrap();
    kagzi_store::Store::close(&store).await;
    Connection::open(file.path()).unwrap()
}

#[tokio::test]
async fn every_statement_can_be_prepared() {
    let file = SqliteFile::fresh();
    let connection = migrated(&file).await;

    for (name, sql) in all() {
        if let Err(error) = connection.prepare(sql) {
            panic!("{name}: {error}\n{sql}");
        }
    }
}

#[tokio::test]
async fn statements_have_names_of_their_own() {
    let mut names: Vec<_> = all().map(|(name, _)| name).collect();
    let count = names.len();

    names.sort();
    names.dedup();

    assert_eq!(names.len(), count);
}

/// Every fixed statement.
fn all() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    STATEMENTS.iter().copied().flatten()
}

fn plan(connection: &Connection, name: &str) -> String {
    let mut statements = all();
    let (_, sql) = statements.find(|(found, _)| *found == name).expect("the statement exists");
    plan_of(connection, sql)
}

fn plan_of(connection: &Connection, sql: &str) -> String {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let unbound = vec![rusqlite::types::Null; statement.parameter_count()];
    let lines = statement
        .query_map(rusqlite::params_from_iter(unbound), |row| row.get::<_, String>(3))
        .unwrap()
        .collect::<Result<Vec<_>, _>>()
        .unwrap();
    lines.join("\n")
}

#[tokio::test]
async fn hot_statements_use_their_index() {
    let file = SqliteFile::fresh();
    let connection = migrated(&file).await;
    let hot = [
        "DUE",
        "NEXT_DUE",
        "SWEEP_DUE",
        "NEXT_SWEEP",
        "LEASED_BY",
        "STALE_WORKERS",
        "LOAD_RUN",
        "LOAD_EVENTS",
        "FIND_BUSINESS",
        "UPDATE_RUN",
        "LOAD_SCHEDULE",
        "DUE_SCHEDULES",
        "NEXT_SCHEDULE",
        "UPDATE_SCHEDULE",
    ];

    let plans: Vec<_> = hot.iter().map(|name| format!("{name}\n{}", plan(&connection, name))).collect();

    for plan in &plans {
        assert!(plan.contains("SEARCH") || plan.contains("INDEX"), "{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "sorts: {plan}");
    }
    insta::assert_snapshot!(plans.join("\n\n"));
}

#[tokio::test]
async fn reads_of_one_row_never_scan_a_table() {
    let file = SqliteFile::fresh();
    let connection = migrated(&file).await;

    let plans: Vec<_> = READ_STATEMENTS
        .iter()
        .chain(EVENT_STATEMENTS)
        .filter(|(name, _)| *name != "INSERT_EVENTS")
        .map(|(name, _)| format!("{name}\n{}", plan(&connection, name)))
        .collect();

    for plan in &plans {
        assert!(!plan.contains("SCAN") && !plan.contains("runs_listed"), "reads too much: {plan}");
    }
    insta::assert_snapshot!(plans.join("\n\n"));
}

#[tokio::test]
async fn controls_and_depths_are_read_by_index() {
    let file = SqliteFile::fresh();
    let connection = migrated(&file).await;

    let plans: Vec<_> = RULE_STATEMENTS
        .iter()
        .chain(WORKER_STATEMENTS)
        .map(|(name, _)| format!("{name}\n{}", plan(&connection, name)))
        .collect();

    for plan in &plans {
        assert!(!plan.contains("TEMP B-TREE") || plan.starts_with("DEPTHS_LEASED"), "sorts: {plan}");
        let counts = plan.starts_with("LEASED_BEHIND") || plan.starts_with("DEPTHS_LEASED");
        assert!(!plan.contains("SCAN") || counts && plan.contains("USING INDEX runs_leased"), "{plan}");
    }
}

/// Every filter, and what must lead when runs are listed by creation and by their end.
fn filters() -> Vec<(&'static str, RunFilter, [&'static str; 2])> {
    let all = RunFilter::default;
    let some = |name: &str| Some(Name::from(name));
    let status = |status| RunFilter { statuses: vec![status], ..all() };
    let range = TimeRange { from: Some(Timestamp(1)), to: Some(Timestamp(9)) };
    let labels = vec![("tenant".into(), "acme".into()), ("tier".into(), "gold".into())];
    vec![
        ("none", all(), ["runs_listed", "runs_finished"]),
        ("created", RunFilter { created: range, ..all() }, ["runs_listed", "runs_finished"]),
        (
            "type",
            RunFilter { workflow_type: some("w"), ..all() },
            ["COVERING INDEX runs_listed", "runs_finished"],
        ),
        (
            "queue",
            RunFilter { task_queue: some("q"), ..all() },
            ["COVERING INDEX runs_listed", "runs_finished"],
        ),
        ("failed", status(Status::Failed), ["runs_by_status", "runs_ended_badly"]),
        ("completed", status(Status::Completed), ["runs_listed", "runs_finished"]),
        (
            "error code",
            RunFilter { error_code: some("E"), ..all() },
            ["runs_error_code ", "runs_error_code_finished"],
        ),
        (
            "schedule",
            RunFilter { schedule: some("nightly"), ..all() },
            ["runs_scheduled ", "runs_scheduled_finished"],
        ),
        ("label", RunFilter { labels, ..all() }, ["run_labels_created", "run_labels_finished"]),
    ]
}

#[tokio::test]
async fn every_listing_walks_an_index_in_its_order_and_sorts_nothing() {
    let file = SqliteFile::fresh();
    let connection = migrated(&file).await;
    let from = Some(Cursor { at: Timestamp(5), id: uuid::Uuid::nil() });

    for (name, filter, indexes) in filters() {
        for (by, index) in [OrderBy::CreatedAt, OrderBy::FinishedAt].into_iter().zip(indexes) {
            for (ascending, direction) in [(false, Direction::Next), (true, Direction::Prev)] {
                let filter = RunFilter { order: RunOrder { by, ascending }, ..filter.clone() };
                let listing = run_listing(&"default".into(), &filter);
                let page = PageRequest { from, direction, limit: 50 };
                for statement in [listing.rows(&page), listing.other_side(&page).unwrap(), listing.count()] {
                    let plan = plan_of(&connection, &statement.sql);

                    let led = format!("{plan} ");
                    assert!(
                        led.contains(index),
                        "{name} by {by:?} is not led by {index}:\n{plan}\n{}",
                        statement.sql
                    );
                    // What the page was cut to is sorted once more after its rows were fetched: a page, no
                    // more.
                    let covered = plan.contains(" page");
                    assert!(covered || !plan.contains("TEMP B-TREE"), "{name} by {by:?} sorts:\n{plan}");
                    assert!(
                        !plan.contains("SCAN runs") && !plan.contains("SCAN label"),
                        "{name} by {by:?} reads a table:\n{plan}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn listings_that_sort_find_their_few_rows_by_an_index() {
    let file = SqliteFile::fresh();
    let connection = migrated(&file).await;
    let all = RunFilter::default;
    let range = TimeRange { from: Some(Timestamp(1)), to: None };
    let cases = [
        ("running", RunFilter { statuses: vec![Status::Running], ..all() }, "runs_leased"),
        ("business id", RunFilter { business_id: Some("order-1".into()), ..all() }, "runs_business"),
        ("prefix", RunFilter { business_id_prefix: Some("order".into()), ..all() }, "runs_business"),
        ("finished", RunFilter { finished: range, ..all() }, "runs_finished"),
        ("retrying", RunFilter { reason: Some("retry".into()), ..all() }, "runs_by_status"),
        ("several", RunFilter { statuses: vec![Status::Failed, Status::Paused], ..all() }, "runs_by_status"),
    ];

    for (name, filter, index) in cases {
        let listing = run_listing(&"default".into(), &filter);
        let page = PageRequest { from: None, direction: Direction::Next, limit: 50 };
        for statement in [listing.rows(&page), listing.count()] {
            let plan = plan_of(&connection, &statement.sql);

            assert!(plan.contains(index), "{name} is not led by {index}:\n{plan}");
        }
    }
}
