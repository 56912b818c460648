//! The embedded store: one SQLite file, one writer thread with group commit, a few readers.
//!
//! WAL with `synchronous=FULL`: an answered command survives a power cut. One process owns the file; a second
//! one is refused (see [`open`](SqliteStore::open)), because two would each believe their own memory.

mod backend;
mod backup;
mod controls;
mod db;
mod events;
mod file_lock;
mod generations;
mod identity;
mod interventions;
mod labels;
mod left_log;
mod migrate;
mod newest;
mod notices;
mod nouns;
mod pool;
mod private;
mod reads;
mod restore_fence;
mod retention;
mod runs;
mod schedules;
mod sound;
mod sqlite;
mod store;
mod topics;
#[cfg(feature = "turso")]
mod turso;
mod value;
mod verify;
mod workers;

pub use backup::{Replace, backup, restore};
pub use controls::STATEMENTS as RULE_STATEMENTS;
pub use events::STATEMENTS as EVENT_STATEMENTS;
pub use reads::{STATEMENTS as READ_STATEMENTS, run_listing};
#[cfg(feature = "turso")]
pub use store::TursoStore;
pub use store::{SqliteReads, SqliteStore};
pub use verify::{Complaint, Verified, verify};
pub use workers::STATEMENTS as WORKER_STATEMENTS;

/// Every fixed statement, table by table; tests prepare each on a real database.
pub const STATEMENTS: &[&[kagzi_store::StatementEntry]] = &[
    backend::STATEMENTS,
    controls::STATEMENTS,
    events::STATEMENTS,
    generations::STATEMENTS,
    labels::STATEMENTS,
    reads::COUNTS,
    reads::STATEMENTS,
    interventions::STATEMENTS,
    notices::STATEMENTS,
    nouns::STATEMENTS,
    topics::STATEMENTS,
    retention::STATEMENTS,
    runs::STATEMENTS,
    schedules::STATEMENTS,
    workers::STATEMENTS,
];
