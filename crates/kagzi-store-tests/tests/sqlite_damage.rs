//! A row that makes no sense is an error that names it, never a default that looks like what the caller asked for.

mod sqlite_file;

use kagzi_model::RetryPolicy;
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
