//! A wait for a signal on a channel: `ctx.signal`. Somebody's word ends it, or its time.

use crate::Status;

pub const REASON: &str = "signal";
pub const STATUS: Status = Status::Sleeping;
