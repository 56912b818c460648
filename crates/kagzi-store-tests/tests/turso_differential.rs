//! The reference store and Turso give the same answers to the same operations, and SQLite reads what Turso
//! left.
//!
//! `KAGZI_SEED=42 cargo test -p kagzi-store-tests --features turso --test turso_differential` plays one game
//! again.

mod turso_file;

use std::sync::Arc;

use kagzi_store_tests::{
    MemoryFactory,
    differential::{Tally, play},
};
use turso_file::{Kept, TursoFile};

const MOVES: usize = 600;

async fn game(seed: u64) -> Tally {
    let file = Arc::new(TursoFile::fresh());

    let tally = play(seed, MOVES, MemoryFactory, Kept(file.clone())).await;

    println!("seed {seed}: {tally:?}");
    assert!(tally.accepted > MOVES / 3 && tally.refused > 10, "seed {seed}: {tally:?}");
    assert!(tally.assigned > 20 && tally.finished > 5, "seed {seed}: {tally:?}");
    sqlite_finds_it_sound(&file);
    tally
}

/// The file format is SQLite's, and SQLite's own check finds no fault in it.
fn sqlite_finds_it_sound(file: &TursoFile) {
    let db = rusqlite::Connection::open(file.path()).unwrap();
    let verdict: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    let finished = "SELECT count(*) FROM runs WHERE finished_at IS NOT NULL";
    let finished: i64 = db.query_row(finished, [], |row| row.get(0)).unwrap();

    assert_eq!(verdict, "ok");
    assert!(finished > 0);
}

#[tokio::test]
async fn memory_and_turso_agree_on_random_histories() {
    match std::env::var("KAGZI_SEED") {
        Ok(seed) => drop(game(seed.parse().expect("KAGZI_SEED is a number")).await),
        Err(_) => {
            let mut all = Tally::default();
            for seed in 1..=6 {
                all.add(&game(seed).await);
            }
            all.covers_everything();
        }
    }
}
