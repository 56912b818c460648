//! A wait for a time: `ctx.sleep`. The code goes on when it has come, and nobody cuts it short.

use crate::Reason;

pub const REASON: Reason = Reason::Timer;
