//! What stands inside events and has fields of its own.

use super::wire::{Field, Proto, Value, Wire, message, put_message, take_field};
use crate::{
    Backoff, ClosePolicy, Failure, HeardTopic, LivingChild, Millis, Name, RetryPolicy, RunId, TakenSignal,
    Timestamp, UnreadSignal,
};

message! {
    Failure {
        1 code: Name,
        2 message: String,
        3 non_retryable: bool,
        4 retry_after_ms: Option<Millis>,
        5 class: Option<Name>,
        6 details: Option<String>,
        7 http_status: Option<u16>,
    }
    absent None
}

message! {
    RetryPolicy {
        1 maximum_attempts: Option<i32>,
        2 initial_interval_ms: Option<Millis>,
        3 backoff_coefficient: Option<f64>,
        4 maximum_interval_ms: Option<Millis>,
        5 non_retryable_errors: Vec<String>,
        6 retryable_errors: Vec<String>,
        7 backoff: Option<Backoff>,
        8 jitter: Option<f64>,
        9 schedule_ms: Vec<Millis>,
        10 retry_timeout_ms: Option<Millis>,
        11 run_retries_max: Option<i32>,
        12 run_retry_budget_ms: Option<Millis>,
    }
    absent Some(RetryPolicy::default())
}

message! {
    LivingChild {
        1 run: RunId,
        2 close: ClosePolicy,
    }
    absent None
}

message! {
    HeardTopic {
        1 channel: Name,
        2 until: Timestamp,
    }
    absent None
}

message! {
    TakenSignal {
        1 channel: Name,
        2 id: Name,
    }
    absent None
}

message! {
    UnreadSignal {
        1 channel: Name,
        2 id: Name,
        3 received: u64,
        4 failure: Option<Failure>,
    }
    absent None
}
