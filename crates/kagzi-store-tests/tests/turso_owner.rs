//! Whose file it is: one process, and Turso's or SQLite's.

mod turso_file;

use std::sync::Arc;

use kagzi_model::Command;
use kagzi_store::{Silent, Store, StoreError, SystemClock};
use kagzi_store_sqlite::{SqliteStore, TursoStore};
use kagzi_store_tests::Stage;
use turso_file::TursoFile;

fn open(file: &TursoFile) -> Result<Store, StoreError> {
    TursoStore::open(&file.path(), Arc::new(SystemClock::new()), Arc::new(Silent))
}

#[tokio::test]
async fn a_second_open_is_refused_and_does_not_disturb_the_owner() {
    let file = TursoFile::fresh();
    let first = open(&file).unwrap();

    let refused = open(&file).err().expect("the file is in use");

    let StoreError::Unavailable(message) = &refused else { panic!("{refused:?}") };
    assert!(message.contains(&file.path().display().to_string()), "{message}");
    assert!(message.contains(&format!("pid {}", std::process::id())), "{message}");
    assert_eq!(first.apply(vec![]).await, Ok(vec![]));
}

#[tokio::test]
async fn a_closed_file_can_be_opened_again_at_once() {
    let file = TursoFile::fresh();

    for _ in 0..5 {
        open(&file).unwrap().close().await;
    }
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_refused() {
    let file = TursoFile::fresh();
    std::fs::write(file.path(), "this is no database, and long enough for anybody to look at it ".repeat(40))
        .unwrap();

    let refused = open(&file).err().expect("not a database");

    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused:?}");
}

#[tokio::test]
async fn a_file_that_sqlite_made_is_refused_and_left_as_it_was() {
    let file = TursoFile::fresh();
    let sqlite = || SqliteStore::open(&file.path(), Arc::new(SystemClock::new()), Arc::new(Silent));
    sqlite().unwrap().close().await;

    let refused = open(&file).err().expect("its tables cannot be written").to_string();

    assert!(refused.contains("made by sqlite:"), "{refused}");
    sqlite().unwrap().close().await;
}

/// The way back from the beta: the same file, another word in the URL.
#[tokio::test]
async fn a_file_that_turso_made_goes_on_as_sqlite() {
    let file = Arc::new(TursoFile::fresh());
    let stage = Stage::open(turso_file::Kept(file.clone())).await;
    let (first, namespace) = (stage.start("order-1").await, stage.namespace.clone());
    stage.store.close().await;

    let store =
        SqliteStore::open(&file.path(), Arc::new(stage.clock.clone()), Arc::new(Silent)).expect("it opens");
    let found = store.run(&namespace, first).await.unwrap().expect("the run is there");
    let second = stage.new_run("order-2");
    let answers = store.apply(vec![Command::start(second)]).await.unwrap();

    assert_eq!(found.run.business_id.as_deref(), Some("order-1"));
    assert!(answers[0].is_ok(), "{answers:?}");
    store.close().await;
}
