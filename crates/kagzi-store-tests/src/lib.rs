//! One conformance suite for every store. Each file below is a guarantee, each function a claim about it.
//!
//! A store is tested by implementing [`StoreFactory`] and writing `conformance!(its factory)` in a test file;
//! a durable one adds `durability!(its factory)`, and [`differential::play`] compares it with the reference
//! store.

pub mod batches;
pub mod carried;
pub mod children;
pub mod claims;
pub mod closes;
pub mod deadlines;
pub mod differential;
pub mod durability;
pub mod endings;
pub mod events_published;
mod factory;
pub mod gates;
pub mod generations;
pub mod held_schedules;
pub mod history;
pub mod inbox;
pub mod interventions;
pub mod isolation;
pub mod kept_generations;
pub mod kept_promises;
pub mod kept_signals;
pub mod labels;
pub mod leases;
pub mod listing_filters;
pub mod listings;
pub mod lost_workers;
pub mod many_pages;
pub mod meetings;
pub mod namespaces;
pub mod nouns;
pub mod polls;
pub mod promises;
mod random;
pub mod reads;
mod recorder;
pub mod replay_law;
pub mod retention;
pub mod schedules;
pub mod scopes;
pub mod shared_keys;
pub mod signals;
pub mod signals_at_once;
mod stage;
pub mod start_signals;
pub mod starts;
mod suite;
pub mod timers;
pub mod triggers;
pub mod unreadable;
pub mod workers;

pub use factory::{MemoryFactory, StoreFactory, in_postgres};
pub use random::Random;
pub use recorder::Recorder;
pub use stage::{LEASE_MS, Stage, Standing, TYPE, WAIT};
