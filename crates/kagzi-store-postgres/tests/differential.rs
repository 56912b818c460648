//! The reference store and PostgreSQL give the same answers to the same operations.
//!
//! `KAGZI_SEED=42 cargo test -p kagzi-store-postgres --test differential` plays one game again.

mod database;

use database::Database;
use kagzi_store_tests::{MemoryFactory, differential::play};

const MOVES: usize = 500;

async fn game(seed: u64) {
    let tally = play(seed, MOVES, MemoryFactory, Database::fresh().await).await;

    println!("seed {seed}: {tally:?}");
    assert!(tally.accepted > MOVES / 3 && tally.refused > 10, "seed {seed}: {tally:?}");
}

#[tokio::test]
async fn memory_and_postgres_agree_on_random_histories() {
    match std::env::var("KAGZI_SEED") {
        Ok(seed) => game(seed.parse().expect("KAGZI_SEED is a number")).await,
        Err(_) => {
            for seed in 1..=6 {
                game(seed).await;
            }
        }
    }
}
