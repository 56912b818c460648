//! Every SQL statement is one that SQLite accepts, and the hot ones use their index.

mod sqlite_file;

use std::sync::Arc;

use kagzi_store::{Silent, SystemClock};
use kagzi_store_sqlite::{
    COUNT_STATEMENTS, READ_STATEMENTS, RULE_STATEMENTS, SCHEDULE_STATEMENTS, SqliteStore, WRITE_STATEMENTS,
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

    for (name, sql) in all().chain(COUNT_STATEMENTS) {
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
    WRITE_STATEMENTS.iter().chain(READ_STATEMENTS).chain(SCHEDULE_STATEMENTS).chain(RULE_STATEMENTS)
}

fn plan(connection: &Connection, name: &str) -> String {
    let mut statements = all();
    let (_, sql) = statements.find(|(found, _)| *found == name).expect("the statement exists");
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

    let plans: Vec<_> =
        READ_STATEMENTS.iter().map(|(name, _)| format!("{name}\n{}", plan(&connection, name))).collect();

    for plan in &plans {
        assert!(!plan.contains("SCAN") && !plan.contains("runs_listed"), "reads too much: {plan}");
    }
    insta::assert_snapshot!(plans.join("\n\n"));
}

#[tokio::test]
async fn rules_and_depths_are_read_by_index() {
    let file = SqliteFile::fresh();
    let connection = migrated(&file).await;

    let plans: Vec<_> =
        RULE_STATEMENTS.iter().map(|(name, _)| format!("{name}\n{}", plan(&connection, name))).collect();

    for plan in &plans {
        assert!(!plan.contains("TEMP B-TREE") || plan.starts_with("DEPTHS_LEASED"), "sorts: {plan}");
        let counts = plan.starts_with("LEASED_BEHIND") || plan.starts_with("DEPTHS_LEASED");
        assert!(!plan.contains("SCAN") || counts && plan.contains("USING INDEX runs_leased"), "{plan}");
    }
}
