//! A wait for a published event: `ctx.event`. Whoever publishes one on its topic ends it, or its time.

use crate::Reason;

pub const REASON: Reason = Reason::Event;
