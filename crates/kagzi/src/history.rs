//! What a run did: its [events](RunHistory) and the [attempts](StepAttempts) of its steps.
//!
//! ```no_run
//! # async fn look(run: kagzi::client::RunHandle) -> anyhow::Result<()> {
//! for event in run.history().kind("step_failed").all().await? {
//!     println!("{} {} {}", event.sequence, event.kind, event.step.unwrap_or_default());
//! }
//! # Ok(()) }
//! ```

pub(crate) mod attempt;
pub(crate) mod attempts;
pub(crate) mod event;
pub(crate) mod events;

pub use crate::page::Page;
pub use attempt::{StepAttempt, StepStatus};
pub use attempts::StepAttempts;
pub use event::Event;
pub use events::RunHistory;
