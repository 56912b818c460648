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
mod interventions;
mod labels;
mod listener;
mod migrate;
mod notices;
mod notifier;
mod nouns;
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
mod topics;
mod unnamed;
mod wake;
mod wire;
mod workers;
mod write;

pub use clock::PostgresClock;
pub use options::{PostgresOptions, Tls};
pub use reads::run_listing;
pub use store::{PostgresReads, PostgresStore};

/// The statements that the connection prepares by which is written, table by table.
const WRITE_STATEMENTS: &[&[kagzi_store::StatementEntry]] = &[
    backend::STATEMENTS,
    controls::STATEMENTS,
    events::WRITE_STATEMENTS,
    generations::STATEMENTS,
    labels::STATEMENTS,
    interventions::STATEMENTS,
    notices::STATEMENTS,
    nouns::STATEMENTS,
    topics::STATEMENTS,
    retention::STATEMENTS,
    runs::STATEMENTS,
    schedules::STATEMENTS,
    workers::STATEMENTS,
];

/// Every fixed statement; tests prepare each on a real database and look at its plan.
pub fn statements() -> impl Iterator<Item = &'static kagzi_store::StatementEntry> {
    let shown = [reads::STATEMENTS, controls::READ_STATEMENTS, events::READ_STATEMENTS];
    WRITE_STATEMENTS.iter().copied().chain(shown).flatten()
}
