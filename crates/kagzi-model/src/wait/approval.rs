//! A wait for somebody's approval: `ctx.approval`. It is a wait for a signal on a channel of the engine's own.

use super::Wait;
use crate::Reason;

pub const REASON: Reason = Reason::Approval;

impl Wait {
    /// What is to be approved, if the channel is one of an approval.
    pub fn approval(channel: &str) -> Option<&str> {
        channel.strip_prefix("~approval/")
    }
}
