//! The reference store and SQLite give the same answers to the same operations.
//!
//! `KAGZI_SEED=42 cargo test -p kagzi-store-tests --test differential` plays one game again.

mod sqlite_file;

use kagzi_store_tests::{
    MemoryFactory,
    differential::{Tally, play},
};
use sqlite_file::SqliteFile;

const MOVES: usize = 600;

async fn game(seed: u64) -> Tally {
    let tally = play(seed, MOVES, MemoryFactory, SqliteFile::fresh()).await;

    println!("seed {seed}: {tally:?}");
    assert!(tally.accepted > MOVES / 3 && tally.refused > 10, "seed {seed}: {tally:?}");
    assert!(tally.assigned > 20 && tally.finished > 5, "seed {seed}: {tally:?}");
    tally
}

#[tokio::test]
async fn memory_and_sqlite_agree_on_random_histories() {
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
