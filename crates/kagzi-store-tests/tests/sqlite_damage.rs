//! A row that makes no sense is an error that names it, never a default that looks like what the caller asked
//! for.

mod sqlite_file;

use kagzi_model::{Command, RetryPolicy};
use kagzi_store::StoreError;
use kagzi_store_tests::Stage;
use sqlite_file::SqliteFile;

#[tokio::test]
async fn a_damaged_policy_is_an_error_and_never_the_default() {
    let file = SqliteFile::fresh();
    let path = file.path();
    let mut stage = Stage::open(file).await;
    let mut start = stage.new_run("order-1");
    start.options.retry = RetryPolicy { maximum_attempts: Some(2), ..RetryPolicy::default() };
    let run = stage.start_with(start).await;
    stage.store.close().await;
    let db = rusqlite::Connection::open(path).unwrap();
    let damaged = db.execute("UPDATE runs SET options = replace(options, ':2', ':\"two\"')", []).unwrap();
    assert_eq!(damaged, 1);
    drop(db);

    stage.reopen().await;

    let read = stage.store.run(&stage.namespace, run).await;
    assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
}

/// Pages of the tables and indexes, by their names.
fn root_page(path: &std::path::Path, name: &str) -> u64 {
    let db = rusqlite::Connection::open(path).unwrap();
    let root: u32 =
        db.query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [name], |row| row.get(0)).unwrap();
    root.into()
}

/// Overwrites a page with noise, as a failing disk would.
fn overwrite_page(path: &std::path::Path, page: u64) {
    use std::io::{Seek, SeekFrom, Write};

    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start((page - 1) * 8192)).unwrap();
    let noise: Vec<u8> = (0..8192_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    file.write_all(&noise).unwrap();
}

async fn until_damaged(stage: &Stage) -> String {
    loop {
        if let Some(damage) = stage.store.stats().damage() {
            return damage.to_owned();
        }
        tokio::task::yield_now().await;
    }
}

/// A store with a run, closed, and with noise in the root page of this table or index.
async fn damaged(name: &str) -> Stage {
    let file = SqliteFile::fresh();
    let path = file.path();
    let mut stage = Stage::open(file).await;
    stage.start("order-1").await;
    stage.store.close().await;
    overwrite_page(&path, root_page(&path, name));
    stage.reopen().await;
    stage
}

#[tokio::test]
async fn a_damaged_page_is_found_at_the_start_and_no_more_work_is_taken() {
    for name in ["runs", "events", "runs_due", "events_in_order", "workers"] {
        let stage = damaged(name).await;

        let found = tokio::time::timeout(kagzi_store_tests::WAIT, until_damaged(&stage)).await;
        let damage = found.unwrap_or_else(|_| panic!("noise in {name} was not found"));

        assert!(damage.contains("kagzi verify") && damage.contains("kagzi restore"), "{damage}");
        let start = Command::start(stage.new_run("order-2"));
        let refused = stage.store.apply(vec![start]).await;
        assert!(matches!(refused, Err(StoreError::Damaged(_))), "{name}: {refused:?}");
        let list = stage.store.workers_by_prefix(&stage.namespace, "0").await;
        assert!(matches!(list, Err(StoreError::Damaged(_))), "{name}: nothing is answered from what is left");
        stage.store.close().await;
    }
}
