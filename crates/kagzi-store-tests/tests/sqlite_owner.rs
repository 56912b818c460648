//! One process per file: a second opener is refused, and told by whom.

mod sqlite_file;

use std::sync::Arc;

use kagzi_store::{LaneStore, Silent, Store, StoreError, SystemClock};
use kagzi_store_sqlite::{SqliteReads, SqliteStore};
use sqlite_file::SqliteFile;

fn open(file: &SqliteFile) -> Result<LaneStore<SqliteReads>, StoreError> {
    SqliteStore::open(&file.path(), Arc::new(SystemClock::new()), Arc::new(Silent))
}

#[tokio::test]
async fn a_second_open_is_refused_and_names_the_file_and_the_process() {
    let file = SqliteFile::fresh();
    let _first = open(&file).unwrap();

    let refused = open(&file).err().expect("the file is in use");

    let StoreError::Unavailable(message) = &refused else { panic!("{refused:?}") };
    assert!(message.contains(&file.path().display().to_string()), "{message}");
    assert!(message.contains(&format!("pid {}", std::process::id())), "{message}");
}

#[tokio::test]
async fn a_refused_open_does_not_disturb_the_owner() {
    let file = SqliteFile::fresh();
    let first = open(&file).unwrap();

    for _ in 0..3 {
        assert!(open(&file).is_err());
    }

    assert_eq!(first.apply(vec![]).await, Ok(vec![]));
}

#[tokio::test]
async fn a_closed_file_can_be_opened_again_at_once() {
    let file = SqliteFile::fresh();

    for _ in 0..5 {
        let store = open(&file).unwrap();
        store.close().await;
    }
}

#[tokio::test]
async fn a_dropped_store_lets_its_file_go() {
    let file = SqliteFile::fresh();
    drop(open(&file).unwrap());

    // Nobody tells when the writer thread has ended, so try until it has.
    let opened = tokio::time::timeout(kagzi_store_tests::WAIT, async {
        loop {
            match open(&file) {
                Ok(store) => return store,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    });
    opened.await.expect("the file is free").close().await;
}

#[tokio::test]
async fn a_missing_folder_is_made() {
    let file = SqliteFile::fresh();
    let deep = file.path().with_file_name("a").join("b").join("kagzi.db");

    let store = SqliteStore::open(&deep, Arc::new(SystemClock::new()), Arc::new(Silent)).unwrap();

    store.close().await;
    assert!(deep.exists());
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_refused() {
    let file = SqliteFile::fresh();
    std::fs::write(file.path(), "this is no database, and long enough for SQLite to look at it ".repeat(40))
        .unwrap();

    let refused = open(&file).err().expect("not a database");

    assert!(matches!(refused, StoreError::Damaged(_)), "{refused:?}");
}
