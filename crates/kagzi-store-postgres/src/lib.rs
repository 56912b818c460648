//! The shared store: any number of servers on one PostgreSQL database.
//!
//! One connection writes, fed by the lane: what a batch needs is loaded and locked in id order, what it
//! changed goes out as UNNEST arrays together with the COMMIT, so that a batch whose runs are in memory is
//! one round trip. Memory may be behind the database when another server wrote; the row's version and the
//! event's number notice, and the lane repeats the batch. See [`PostgresStore::open`].
//!
//! Deliberately absent: triggers, `NOW()`, session state between transactions when `notify` is off, and named
//! statements behind a pooler (PgBouncer).

mod at_open;
mod backend;
#[cfg(feature = "test-fixture")]
pub mod bouncer;
mod clock;
mod controls;
mod error;
mod events;
#[cfg(feature = "test-fixture")]
pub mod fixture;
mod generations;
mod labels;
mod listener;
mod migrate;
mod notifier;
mod options;
mod peers;
mod pool;
mod reads;
mod retention;
mod row;
mod runs;
mod schedules;
mod session;
mod store;
#[cfg(feature = "tls")]
mod tls;
mod unnamed;
mod wake;
mod wire;
mod workers;
mod write;

pub use backend::STATEMENTS as PROBE_STATEMENTS;
pub use clock::PostgresClock;
pub use controls::{READ_STATEMENTS as RULE_READ_STATEMENTS, STATEMENTS as RULE_STATEMENTS};
pub use events::{READ_STATEMENTS as EVENT_READ_STATEMENTS, WRITE_STATEMENTS as EVENT_STATEMENTS};
pub use generations::STATEMENTS as GENERATION_STATEMENTS;
pub use labels::STATEMENTS as LABEL_STATEMENTS;
pub use options::{PostgresOptions, Tls};
pub use reads::{STATEMENTS as READ_STATEMENTS, run_listing};
pub use retention::STATEMENTS as RETENTION_STATEMENTS;
pub use runs::STATEMENTS as RUN_STATEMENTS;
pub use schedules::STATEMENTS as SCHEDULE_STATEMENTS;
pub use store::{PostgresReads, PostgresStore};
pub use workers::STATEMENTS as WORKER_STATEMENTS;
