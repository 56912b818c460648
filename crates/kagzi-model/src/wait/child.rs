//! A wait for the end of a child: `ctx.child`. The child's end ends it, or its time.

use crate::Reason;

pub const REASON: Reason = Reason::Child;
