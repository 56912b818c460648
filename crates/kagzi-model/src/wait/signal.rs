//! A wait for a signal on a channel: `ctx.signal`. Somebody's word ends it, or its time.

use crate::Reason;

pub const REASON: Reason = Reason::Signal;
