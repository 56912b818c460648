//! What the contract's closed sets contain: each member is declared once, with its number, its name and what
//! it means. The rules (`kagzi-model`), the contract (`kagzi-proto`) and the SDK take their constants from
//! here, and `docs/statuses.md` and the tables of `docs/retries.md` and `docs/failures.md` are written from
//! here. Tests hold the `.proto` files against it.
//!
//! Numbers are stored and sent: they are never reused, and a member's number never changes.

mod backoffs;
pub mod codes;
pub mod handling;
pub mod presets;
mod reasons;
mod status;

pub use backoffs::Backoff;
pub use handling::{Class, Rung, Severity};
pub use presets::{PRESETS, Preset};
pub use reasons::Reason;
pub use status::{Status, StepStatus};
