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
mod labels;
mod left_log;
mod migrate;
mod newest;
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
#[cfg(feature = "turso")]
mod turso;
mod value;
mod verify;
mod workers;

pub use backend::STATEMENTS as PROBE_STATEMENTS;
pub use backup::{Replace, backup, restore};
pub use controls::STATEMENTS as RULE_STATEMENTS;
pub use events::STATEMENTS as EVENT_STATEMENTS;
pub use generations::STATEMENTS as GENERATION_STATEMENTS;
pub use labels::STATEMENTS as LABEL_STATEMENTS;
pub use reads::{COUNTS as COUNT_STATEMENTS, STATEMENTS as READ_STATEMENTS, run_listing};
pub use retention::STATEMENTS as RETENTION_STATEMENTS;
pub use runs::STATEMENTS as RUN_STATEMENTS;
pub use schedules::STATEMENTS as SCHEDULE_STATEMENTS;
#[cfg(feature = "turso")]
pub use store::TursoStore;
pub use store::{SqliteReads, SqliteStore};
pub use verify::{Complaint, Verified, verify};
pub use workers::STATEMENTS as WORKER_STATEMENTS;
