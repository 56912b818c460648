//! Error codes that the SDK reports or understands. Programs compare these, never messages.

/// An error of user code without a type that says more.
pub(crate) const ERROR: &str = "ERROR";
pub(crate) const NON_RETRYABLE: &str = "NON_RETRYABLE";
pub(crate) const RETRY_AFTER: &str = "RETRY_AFTER";
pub(crate) const PANIC: &str = "PANIC";
pub(crate) const TIMEOUT: &str = "TIMEOUT";
pub(crate) const INVALID_INPUT: &str = "INVALID_INPUT";
pub(crate) const INVALID_OUTPUT: &str = "INVALID_OUTPUT";

/// Said by the server in `Refused`; the first also found here before sending.
pub(crate) const PAYLOAD_TOO_LARGE: &str = "PAYLOAD_TOO_LARGE";
pub(crate) const LEASE_LOST: &str = "LEASE_LOST";
pub(crate) const CANCELLED: &str = "CANCELLED";
/// A retry policy that makes no sense, found before the step is executed.
pub(crate) const INVALID_POLICY: &str = "INVALID_POLICY";
