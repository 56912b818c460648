//! A wait for the next attempt of a step that failed, or of the run. "Retry now" cuts it short.

use crate::Status;

pub const REASON: &str = "retry";
pub const STATUS: Status = Status::Pending;
