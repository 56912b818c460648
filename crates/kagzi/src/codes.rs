//! Error codes that the SDK reports or understands, from the contract's catalogue. Programs compare these,
//! never messages.

pub(crate) use kagzi_proto::codes::{
    ERROR, INVALID_INPUT, INVALID_OUTPUT, INVALID_POLICY, NON_RETRYABLE, NOT_YET, PANIC, PAYLOAD_TOO_LARGE,
    PROMISE_SILENT, PROMISE_TIMED_OUT, RETRY_AFTER, TIMED_OUT,
};
