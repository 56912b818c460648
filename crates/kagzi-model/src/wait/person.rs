//! A wait for the answer of a person: `ctx.approval` and its siblings. The answer ends it, or the end of the
//! question's time, which is told like an answer.

use crate::Reason;

pub const REASON: Reason = Reason::Person;
