//! What is derived from a run's history: the aggregate that decisions look at, the journal that replay needs,
//! the attempts and the picture that people read.

mod aggregate;
mod attempts;
mod journal;

pub use aggregate::Aggregate;
pub use attempts::{AttemptState, StepAttempt, attempts};
pub use journal::{Journal, JournalEntry, JournalState, journal};
