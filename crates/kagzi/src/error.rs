//! What the client and the worker answer when something cannot be done.

use kagzi_proto::v1::WorkflowStatus;
use tonic::Code;

/// Why a call of the client or the worker failed. Each variant is something a caller does differently.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address that can never work.
    #[error("invalid address '{address}': {rule}")]
    InvalidAddress {
        /// As given.
        address: String,
        /// What an address must be.
        rule: &'static str,
    },
    /// No server answered; trying again later may help.
    #[error("could not reach a server at {addresses}: {message}")]
    Unreachable {
        /// All that were tried.
        addresses: String,
        /// What the last one said.
        message: String,
    },
    /// The server answered, and refused.
    #[error("could not {attempted}: {message} ({code:?})")]
    Refused {
        /// What was asked for.
        attempted: &'static str,
        /// The gRPC code.
        code: Code,
        /// The server's words.
        message: String,
    },
    /// A value that does not turn into JSON.
    #[error("could not encode {what} as JSON: {message}")]
    Encode {
        /// Which value.
        what: &'static str,
        /// Why.
        message: String,
    },
    /// A payload that does not turn into the asked type.
    #[error("could not decode {what}: {message}")]
    Decode {
        /// Which payload.
        what: &'static str,
        /// Why.
        message: String,
    },
    /// The worker cannot serve as it was set up.
    #[error("invalid worker: {0}")]
    InvalidWorker(String),
    /// The run has ended, but not well.
    #[error(transparent)]
    RunFailed(#[from] RunFailed),
}

/// How a run ended that did not complete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("run {run_id} ended {}: {message} ({code})", .status.as_str_name().trim_start_matches("WORKFLOW_STATUS_"))]
pub struct RunFailed {
    /// Which run.
    pub run_id: String,
    /// FAILED, CANCELLED or TIMED_OUT.
    pub status: WorkflowStatus,
    /// For programs, e.g. `PANIC`, `TIMED_OUT`, or a code of your own.
    pub code: String,
    /// For people.
    pub message: String,
}

impl Error {
    pub(crate) fn refused(attempted: &'static str, status: &tonic::Status) -> Error {
        // A connection that breaks under a call is reported as UNKNOWN or CANCELLED, depending on where it broke;
        // for the caller it is the same outage as a server that cannot be reached.
        let code = if answered(status) { status.code() } else { Code::Unavailable };
        Error::Refused { attempted, code, message: status.message().to_owned() }
    }

    pub(crate) fn undecodable(what: &'static str, error: &impl ToString) -> Error {
        Error::Decode { what, message: error.to_string() }
    }

    /// Nobody answered: the same call may succeed on another server, or a moment later.
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            Error::Unreachable { .. } => true,
            Error::Refused { code, .. } => *code == Code::Unavailable,
            Error::InvalidAddress { .. }
            | Error::Encode { .. }
            | Error::Decode { .. }
            | Error::InvalidWorker(_)
            | Error::RunFailed(_) => false,
        }
    }
}

/// The status is the server's word, not our own about a connection that broke: only that has a cause.
pub(crate) fn answered(status: &tonic::Status) -> bool {
    std::error::Error::source(status).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_broke_under_a_call_is_an_outage_and_the_servers_word_is_not() {
        let broken = tonic::Status::from_error(Box::new(std::io::Error::other("broken pipe")));
        let refused = tonic::Status::unknown("the server says so");

        assert!(Error::refused("start a run", &broken).is_outage());
        assert!(!Error::refused("start a run", &refused).is_outage());
    }

    #[test]
    fn a_failed_run_says_how_it_ended() {
        let status = WorkflowStatus::TimedOut;
        let failed =
            RunFailed { run_id: "r1".into(), status, code: "DEADLINE".into(), message: "late".into() };

        assert_eq!(Error::from(failed).to_string(), "run r1 ended TIMED_OUT: late (DEADLINE)");
    }
}
