//! Errors that decide the exit code of the command, which is a contract with scripts.

use crate::address::Address;

/// An error whose exit code cannot be read from a gRPC status.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    NotFound(String),
    #[error("no server at {address}: {why}; start one with: kagzi dev")]
    Unreachable { address: Address, why: String },
    /// The verb has already printed what went wrong.
    #[error("failed")]
    Reported { code: u8 },
}

impl Trouble {
    pub fn usage(message: impl Into<String>) -> anyhow::Error {
        Trouble::Usage(message.into()).into()
    }
}
