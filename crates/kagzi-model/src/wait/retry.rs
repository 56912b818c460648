//! A wait for the next attempt of a step that failed, or of the run. "Retry now" cuts it short.

use crate::Reason;

pub const REASON: Reason = Reason::Retry;
