//! Runs that start by a timetable.
//!
//! ```no_run
//! # async fn nightly(client: kagzi::Client) -> anyhow::Result<()> {
//! use kagzi::schedule::Overlap;
//!
//! let report = client.schedule("nightly", "report", "reports", "all").cron("0 3 * * *");
//! let report = report.time_zone("Europe/Berlin").overlap(Overlap::Skip).await?;
//! println!("{}", report.next(3).await?.words);
//! # Ok(()) }
//! ```

pub(crate) mod builder;
pub(crate) mod described;
pub(crate) mod handle;
pub(crate) mod list;

pub use crate::page::Page;
pub use builder::{Overlap, ScheduleBuilder};
pub use described::{Schedule, Timing};
pub use handle::{Backfill, Missed, NextTimes, ScheduleHandle};
pub use list::Schedules;
