//! One process per file: a second opener is refused, and told by whom.

mod sqlite_file;

use std::sync::Arc;

use kagzi_store::{Silent, Store, StoreError, SystemClock};
use kagzi_store_sqlite::SqliteStore;
use sqlite_file::SqliteFile;

fn open(file: &SqliteFile) -> Result<Store, StoreError> {
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

/// Files and folders that only their owner can read.
#[cfg(unix)]
fn mode(path: &std::path::Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).unwrap().permissions()) & 0o777
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_can_read_the_database_its_log_its_lock_its_folder_or_a_backup() {
    let file = SqliteFile::fresh();
    let deep = file.path().with_file_name("data").join("kagzi.db");
    let beside = |suffix: &str| deep.with_file_name(format!("kagzi.db{suffix}"));

    let store = SqliteStore::open(&deep, Arc::new(SystemClock::new()), Arc::new(Silent)).unwrap();
    kagzi_store_sqlite::backup(&deep, &beside(".copy")).unwrap();

    for suffix in ["", "-wal", "-shm", ".lock", ".copy"] {
        assert_eq!(mode(&beside(suffix)), 0o600, "kagzi.db{suffix}");
    }
    assert_eq!(mode(deep.parent().unwrap()), 0o700);
    store.close().await;
}

#[cfg(unix)]
#[tokio::test]
async fn another_name_of_the_same_file_is_refused_while_it_is_open() {
    let file = SqliteFile::fresh();
    let _first = open(&file).unwrap();
    let refused = |path: &std::path::Path| {
        let opened = SqliteStore::open(path, Arc::new(SystemClock::new()), Arc::new(Silent));
        opened.err().expect("it is the same file").to_string()
    };

    let link = file.path().with_file_name("link.db");
    std::os::unix::fs::symlink(file.path(), &link).unwrap();
    assert!(refused(&link).contains("in use by another kagzi process"), "{}", refused(&link));

    let twin = file.path().with_file_name("twin.db");
    std::fs::hard_link(file.path(), &twin).unwrap();
    assert!(refused(&twin).contains("hard link"), "{}", refused(&twin));
    std::fs::remove_file(&twin).unwrap();

    std::fs::remove_file(file.path().with_file_name("kagzi.db.lock")).unwrap();
    assert!(refused(&file.path()).contains("in use by another kagzi process"), "{}", refused(&file.path()));
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_is_moved_away_under_the_store_is_noticed_and_moved_back_it_goes_on() {
    let file = SqliteFile::fresh();
    let store = open(&file).unwrap();
    let away = file.path().with_file_name("away.db");

    std::fs::rename(file.path(), &away).unwrap();
    let error = store.sweep(kagzi_store::SweepKind::Probe {}).await.unwrap_err();
    assert!(matches!(&error, StoreError::Unavailable(why) if why.contains("was moved")), "{error:?}");
    std::fs::rename(&away, file.path()).unwrap();

    store.sweep(kagzi_store::SweepKind::Probe {}).await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn a_database_of_another_program_is_refused_and_left_as_it_is() {
    let file = SqliteFile::fresh();
    let foreign = rusqlite::Connection::open(file.path()).unwrap();
    foreign.execute_batch("CREATE TABLE customers (x); PRAGMA user_version = 3").unwrap();
    drop(foreign);
    let before = std::fs::read(file.path()).unwrap();

    let refused = open(&file).err().expect("it is not ours").to_string();

    assert!(refused.contains("database of another program"), "{refused}");
    assert_eq!(std::fs::read(file.path()).unwrap(), before);
}

#[tokio::test]
async fn a_database_from_before_it_had_an_id_is_known_by_its_tables_and_signed() {
    let file = SqliteFile::fresh();
    open(&file).unwrap().close().await;
    let db = rusqlite::Connection::open(file.path()).unwrap();
    db.execute_batch("PRAGMA application_id = 0").unwrap();
    drop(db);

    open(&file).unwrap().close().await;

    let db = rusqlite::Connection::open(file.path()).unwrap();
    let id: i64 = db.query_row("PRAGMA application_id", [], |row| row.get(0)).unwrap();
    assert_eq!(id, 0x6B61_677A);
}

#[tokio::test]
async fn an_empty_file_where_a_database_was_is_not_made_anew_in_silence() {
    let file = SqliteFile::fresh();
    open(&file).unwrap().close().await;
    std::fs::write(file.path(), b"").unwrap();

    let refused = open(&file).err().expect("there was a database").to_string();

    assert!(refused.contains("is empty") && refused.contains("kagzi restore"), "{refused}");
    std::fs::remove_file(file.path().with_file_name("kagzi.db.lock")).unwrap();
    open(&file).expect("whoever removes the lock file begins anew").close().await;
}
