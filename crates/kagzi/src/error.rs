//! What the client and the worker answer when something cannot be done.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kagzi_proto::refusal;

pub use crate::client::run::RunStatus;
pub use crate::code::Code;
use crate::step_error::StepFailure;

/// Why a call of the client or the worker failed. Each variant is something that a caller does differently.
///
/// ```no_run
/// # async fn start(client: kagzi::Client) -> anyhow::Result<()> {
/// use kagzi::error::{Code, Error};
///
/// match client.get("0198").await {
///     Ok(run) => println!("{:?}", run.status),
///     Err(Error::Refused(refusal)) if refusal.code == Code::NotFound => println!("no such run"),
///     Err(error) => return Err(error.into()),
/// }
/// # Ok(()) }
/// ```
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
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// The server took the call and did not answer in time. Whether it did what was asked is not known.
    #[error("could not {attempted}: no answer within {waited:?}")]
    TimedOut {
        /// What was asked for.
        attempted: &'static str,
        /// See [`ClientBuilder::call_timeout`](crate::client::ClientBuilder::call_timeout).
        waited: Duration,
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
    /// The embedded engine cannot open its database.
    #[error("could not open the store {store}: {message}")]
    Store {
        /// As given.
        store: String,
        /// Why.
        message: String,
    },
    /// The run has ended, but not well.
    #[error(transparent)]
    RunFailed(Box<RunFailed>),
    /// The code of a run said no to a request.
    #[error(transparent)]
    Rejected(Box<AskRejected>),
    /// The run waits for a person, so its result may never come.
    #[error(transparent)]
    RunPaused(Box<RunPaused>),
}

/// A server's refusal, with all that it said about it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Refusal {
    /// What was asked for, e.g. `start a run`.
    pub attempted: &'static str,
    /// Of which kind it is.
    pub code: Code,
    /// Why exactly, for programs, e.g. `PAYLOAD_TOO_LARGE`; empty where the kind says all.
    pub reason: String,
    /// The server's words, for people.
    pub message: String,
    /// The field of the request that is wrong, where it is one.
    pub field: Option<String>,
    /// The run that it is about, where it is about one.
    pub run_id: Option<String>,
    /// When the server wants to be asked again.
    pub retry_after: Option<Duration>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Refusal {
    /// A refusal with nothing but a message, for tests of programs that handle refusals.
    ///
    /// ```
    /// use kagzi::error::{Code, Error, Refusal};
    ///
    /// let error = Error::from(Refusal::new("read a run", Code::NotFound, "there is no such run"));
    /// assert_eq!(error.code(), Some(Code::NotFound));
    /// assert!(error.is_not_found() && !error.is_outage());
    /// ```
    pub fn new(attempted: &'static str, code: Code, message: impl Into<String>) -> Refusal {
        Refusal {
            attempted,
            code,
            reason: String::new(),
            message: message.into(),
            field: None,
            run_id: None,
            retry_after: None,
            source: None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not {}: {} ({})", self.attempted, self.message, self.code)
    }
}

impl StdError for Refusal {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

/// How a run ended that did not complete.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("run {run_id} ended {status}: {message} ({code})")]
#[non_exhaustive]
pub struct RunFailed {
    /// Which run.
    pub run_id: String,
    /// FAILED, CANCELLED or TIMED_OUT.
    pub status: RunStatus,
    /// For programs, e.g. `PANIC`, `TIMED_OUT`, or a code of your own.
    pub code: String,
    /// For people.
    pub message: String,
    /// The class that the failure gave itself, or empty.
    pub class: String,
    /// What the failure kept.
    pub details: Option<serde_json::Value>,
    /// Executions of the function that failed.
    pub attempts: u32,
    /// The step whose error the function returned, where it was one's.
    pub step: Option<String>,
}

impl RunFailed {
    pub(crate) fn new(run_id: String, status: RunStatus, failure: StepFailure) -> RunFailed {
        RunFailed {
            run_id,
            status,
            code: failure.code,
            message: failure.message,
            class: failure.class,
            details: failure.details,
            attempts: 0,
            step: None,
        }
    }
}

/// A run that waits for a person: its code no longer matches its record, or it took its workers down.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "run {run_id} is paused and waits for a person: {why}. Look at it with `kagzi run why`, and let it go \
     on with `kagzi run resume`"
)]
#[non_exhaustive]
pub struct RunPaused {
    /// Which run.
    pub run_id: String,
    /// Why, for people.
    pub why: String,
}

impl RunPaused {
    pub(crate) fn new(run_id: String, why: String) -> RunPaused {
        RunPaused { run_id, why }
    }
}

/// The code of a run said no to a request: see [`RunHandle::ask`](crate::client::RunHandle::ask).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("run {run_id} rejected the request: {message} ({code})")]
#[non_exhaustive]
pub struct AskRejected {
    /// Which run.
    pub run_id: String,
    /// For programs, e.g. `REJECTED`, or a code of your own.
    pub code: String,
    /// For people.
    pub message: String,
}

impl AskRejected {
    pub(crate) fn new(run_id: &str, code: String, message: String) -> AskRejected {
        AskRejected { run_id: run_id.to_owned(), code, message }
    }
}

impl From<AskRejected> for Error {
    fn from(rejected: AskRejected) -> Error {
        Error::Rejected(Box::new(rejected))
    }
}

impl From<RunFailed> for Error {
    fn from(failed: RunFailed) -> Error {
        Error::RunFailed(Box::new(failed))
    }
}

impl From<RunPaused> for Error {
    fn from(paused: RunPaused) -> Error {
        Error::RunPaused(Box::new(paused))
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        Error::Refused(Box::new(refusal))
    }
}

/// When the server wants to be asked again; negative = never.
const PUSHBACK: &str = "grpc-retry-pushback-ms";

impl Error {
    pub(crate) fn refused(attempted: &'static str, status: &tonic::Status) -> Error {
        // A connection that breaks under a call is reported as UNKNOWN or CANCELLED, depending on where it
        // broke; for the caller it is the same outage as a server that cannot be reached.
        let code = if answered(status) { Code::of(status.code()) } else { Code::Unavailable };
        let said = |name: &str| status.metadata().get(name).and_then(|value| value.to_str().ok());
        let pushback = said(PUSHBACK).and_then(|ms| ms.parse().ok()).map(Duration::from_millis);
        let source = (!answered(status)).then(|| Arc::new(status.clone()) as Arc<dyn StdError + Send + Sync>);
        let info = refusal::error_info(status).unwrap_or_default();
        Refusal {
            run_id: info.metadata.get("run_id").cloned(),
            reason: info.reason,
            field: refusal::field_violations(status).into_iter().next().map(|violation| violation.field),
            retry_after: pushback,
            source,
            ..Refusal::new(attempted, code, status.message())
        }
        .into()
    }

    pub(crate) fn undecodable(what: &'static str, error: &impl ToString) -> Error {
        Error::Decode { what, message: error.to_string() }
    }

    /// The kind of the server's refusal; none where no server refused.
    pub fn code(&self) -> Option<Code> {
        match self {
            Error::Refused(refusal) => Some(refusal.code),
            Error::InvalidAddress { .. }
            | Error::Unreachable { .. }
            | Error::TimedOut { .. }
            | Error::Encode { .. }
            | Error::Decode { .. }
            | Error::InvalidWorker(_)
            | Error::Store { .. }
            | Error::RunFailed(_)
            | Error::Rejected(_)
            | Error::RunPaused(_) => None,
        }
    }

    /// What was asked for does not exist.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(Code::NotFound)
    }

    /// Nobody answered: the same call may succeed on another server, or a moment later.
    pub fn is_outage(&self) -> bool {
        match self {
            Error::Unreachable { .. } | Error::TimedOut { .. } => true,
            Error::Refused(refusal) => refusal.code == Code::Unavailable,
            Error::InvalidAddress { .. }
            | Error::Encode { .. }
            | Error::Decode { .. }
            | Error::InvalidWorker(_)
            | Error::Store { .. }
            | Error::RunFailed(_)
            | Error::Rejected(_)
            | Error::RunPaused(_) => false,
        }
    }
}

/// The status is the server's word, not our own about a connection that broke: only that has a cause.
pub(crate) fn answered(status: &tonic::Status) -> bool {
    StdError::source(status).is_none()
}

#[cfg(test)]
mod tests {
    use kagzi_proto::Reason;

    use super::*;

    #[test]
    fn a_connection_that_broke_under_a_call_is_an_outage_and_the_servers_word_is_not() {
        let broken = tonic::Status::from_error(Box::new(std::io::Error::other("broken pipe")));
        let refused = tonic::Status::unknown("the server says so");

        let outage = Error::refused("start a run", &broken);

        assert!(outage.is_outage() && StdError::source(&outage).is_some(), "{outage:?}");
        assert!(!Error::refused("start a run", &refused).is_outage());
    }

    #[test]
    fn a_refusal_keeps_the_reason_and_the_time_that_the_server_gave() {
        let refusal = refusal::Refusal::new(Reason::PayloadTooLarge, "too large");
        let mut status = refusal.with("run_id", "r1").field("input", "at most 2 MiB").status();
        status.metadata_mut().insert(PUSHBACK, "1500".parse().unwrap());

        let Error::Refused(refusal) = Error::refused("start a run", &status) else { panic!("not refused") };

        assert_eq!((refusal.code, refusal.reason.as_str()), (Code::InvalidArgument, "PAYLOAD_TOO_LARGE"));
        assert_eq!((refusal.field.as_deref(), refusal.run_id.as_deref()), (Some("input"), Some("r1")));
        assert_eq!(refusal.retry_after, Some(Duration::from_millis(1500)));
        let said = "could not start a run: too large (INVALID_ARGUMENT)";
        assert_eq!(refusal.to_string(), said);
    }

    #[test]
    fn a_failed_run_says_how_it_ended() {
        let failed = RunFailed::new("r1".into(), RunStatus::TimedOut, StepFailure::new("DEADLINE", "late"));

        assert_eq!(Error::from(failed).to_string(), "run r1 ended TIMED_OUT: late (DEADLINE)");
    }
}
