//! What is derived from a run's history: the aggregate that decisions look at, the journal that replay needs,
//! the attempts and the picture that people read. Each is a [`Projection`]: nothing but what the events say.

mod aggregate;
mod attempts;
mod audit;
mod journal;
mod journal_entry;
#[cfg(test)]
mod journal_tests;
mod pending;
mod progress_kept;
mod scopes;
mod timeline;

use crate::Event;

pub use aggregate::Aggregate;
pub use attempts::{AttemptState, Attempts, StepAttempt, attempts};
pub use audit::{Audit, AuditedChild};
pub use journal::{Journal, journal};
pub use journal_entry::{JournalEntry, JournalState, Sources};
pub use pending::{OpenWait, Pending, pending};
pub use progress_kept::ProgressKept;
pub use scopes::{is_scope, scopes_around};
pub use timeline::{Spent, Stretch, TimeLine, Timeline};

/// A view of a history that is made by taking in its events one after the other, and may go on later where it
/// stopped.
pub trait Projection {
    /// Takes in the next event. Each kind is matched without `_`, so that a new one asks every view.
    fn absorb(&mut self, event: &Event);
}

/// The view of a whole history.
pub fn project<'e, P: Projection + Default>(events: impl IntoIterator<Item = &'e Event>) -> P {
    let mut view = P::default();
    events.into_iter().for_each(|event| view.absorb(event));
    view
}
