//! A wait for a time: `ctx.sleep`. The code goes on when it has come, and nobody cuts it short.

use crate::Status;

pub const REASON: &str = "timer";
pub const STATUS: Status = Status::Sleeping;
