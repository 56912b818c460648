//! Between the public contract and the model.

pub mod aside;
mod controls;
mod event;
mod failure;
mod intervention;
mod journal;
mod lease;
mod payload;
mod run;
mod schedule;
mod shared_key;
mod step;
mod time;
mod waited;
mod words;
mod worker;

pub use controls::{gate, namespace, read_by, read_gate_key, read_values};
pub use event::event;
pub use failure::{failure, read_failure};
pub use intervention::{contact, intervention, notice};
pub use journal::journal_entry;
pub use lease::read_lease;
pub use payload::payload;
pub use run::run;
pub use schedule::schedule;
pub use shared_key::{kept_result, read_holder, read_key, shared_key};
pub use step::{read_step, step_attempt};
pub use time::{read_timestamp, timestamp};
pub use waited::waited;
pub use words::finality;
pub use worker::{read_registration, worker};
