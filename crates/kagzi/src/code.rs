//! The kinds of refusals, as programs compare them.

use std::fmt;

/// What kind of refusal a server answered with. These are the kinds of gRPC under names of our own, so that
/// the transport can be replaced without anybody noticing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The call was taken back before it was answered.
    Cancelled,
    /// Something of the server's that has no better kind.
    Unknown,
    /// A field of the request makes no sense; [`Refusal::field`](crate::error::Refusal::field) names it.
    InvalidArgument,
    /// No answer within the time that was given.
    DeadlineExceeded,
    /// What was asked for does not exist.
    NotFound,
    /// It exists already, as something else.
    AlreadyExists,
    /// The caller may not do this.
    PermissionDenied,
    /// A quota or a limit is used up; [`Refusal::retry_after`](crate::error::Refusal::retry_after) says
    /// whether to wait.
    ResourceExhausted,
    /// It cannot be done in this state.
    FailedPrecondition,
    /// Somebody else was faster.
    Aborted,
    /// Past the end of something.
    OutOfRange,
    /// The server does not know this call.
    Unimplemented,
    /// The server is broken.
    Internal,
    /// No server answered, or it is about to stop; a moment later it may work.
    Unavailable,
    /// What was stored cannot be read any more.
    DataLoss,
    /// The server does not know who asks.
    Unauthenticated,
}

impl Code {
    pub(crate) fn of(code: tonic::Code) -> Code {
        match code {
            // A status that refuses is never "ok"; one that claims it is broken.
            tonic::Code::Ok | tonic::Code::Unknown => Code::Unknown,
            tonic::Code::Cancelled => Code::Cancelled,
            tonic::Code::InvalidArgument => Code::InvalidArgument,
            tonic::Code::DeadlineExceeded => Code::DeadlineExceeded,
            tonic::Code::NotFound => Code::NotFound,
            tonic::Code::AlreadyExists => Code::AlreadyExists,
            tonic::Code::PermissionDenied => Code::PermissionDenied,
            tonic::Code::ResourceExhausted => Code::ResourceExhausted,
            tonic::Code::FailedPrecondition => Code::FailedPrecondition,
            tonic::Code::Aborted => Code::Aborted,
            tonic::Code::OutOfRange => Code::OutOfRange,
            tonic::Code::Unimplemented => Code::Unimplemented,
            tonic::Code::Internal => Code::Internal,
            tonic::Code::Unavailable => Code::Unavailable,
            tonic::Code::DataLoss => Code::DataLoss,
            tonic::Code::Unauthenticated => Code::Unauthenticated,
        }
    }

    /// Its name in gRPC, e.g. `NOT_FOUND`.
    ///
    /// ```
    /// assert_eq!(kagzi::error::Code::NotFound.name(), "NOT_FOUND");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Code::Cancelled => "CANCELLED",
            Code::Unknown => "UNKNOWN",
            Code::InvalidArgument => "INVALID_ARGUMENT",
            Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Code::NotFound => "NOT_FOUND",
            Code::AlreadyExists => "ALREADY_EXISTS",
            Code::PermissionDenied => "PERMISSION_DENIED",
            Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Code::FailedPrecondition => "FAILED_PRECONDITION",
            Code::Aborted => "ABORTED",
            Code::OutOfRange => "OUT_OF_RANGE",
            Code::Unimplemented => "UNIMPLEMENTED",
            Code::Internal => "INTERNAL",
            Code::Unavailable => "UNAVAILABLE",
            Code::DataLoss => "DATA_LOSS",
            Code::Unauthenticated => "UNAUTHENTICATED",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
