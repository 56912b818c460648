//! The codes of the failures that Kagzi itself writes. Programs compare them; docs/errors.md lists them.

/// Declares the codes of failures: constant and what it means.
macro_rules! failure_codes {
    ($($constant:ident $means:literal)+) => {
        $(#[doc = $means] pub const $constant: &str = stringify!($constant);)+

        /// Every code that Kagzi itself writes into `Failure.code`, with its meaning.
        pub const FAILURE_CODES: &[(&str, &str)] = &[$((stringify!($constant), $means),)+];
    };
}

failure_codes! {
    ERROR "An error of the workflow's code without a code of its own."
    NON_RETRYABLE "An error that the workflow's code marked as not to be retried."
    RETRY_AFTER "An error that the workflow's code wants to have retried after a time of its choice."
    PANIC "The workflow's code panicked."
    INVALID_INPUT "The input does not decode into the type that the workflow takes."
    INVALID_OUTPUT "The result does not encode, or a recorded one does not decode into the type that is \
                    asked for."
    INVALID_POLICY "A retry policy makes no sense; found before the step was executed."
    NESTED_STEP "A step was called inside another step."
    OUTSIDE_WORKFLOW "A step was called outside its workflow's function."
    PAYLOAD_TOO_LARGE "A result is larger than the server accepts; the effect has happened."
    TIMED_OUT "An attempt of a step took longer than it may, or the run did not finish before its deadline."
    NOT_YET "A look of `ctx.poll` did not find what it looks for; it looks again."
    WORKER_LOST "The worker that executed the step was lost as often as the policy allows."
    LEASE_LOST "The run was taken from its worker while the attempt ran."
    RELEASED "The worker gave the run back while the attempt ran, as often as it may."
    ABANDONED "The code dropped the step while the attempt ran; its outcome is unknown."
    CANCELLED "The run was cancelled while the attempt ran."
    TERMINATED "A person ended the run as failed."
    QUARANTINED "Workers were lost over the run again and again: it is paused for a person, and its handler \
                 is told."
    RUN_GONE "The run whose failure a handler handles is no longer kept."
    PROMISE_TIMED_OUT "Nobody completed a promise in its time."
    PROMISE_SILENT "Whoever works on a promise has stopped to give signs of life."
    CHILD_NOT_STARTED "A child could not be started: its id belongs to another run, or it was refused."
    CHILD_CLOSED "A child was told to end because its parent had ended."
    QUESTION_EXPIRED "Nobody answered a question to a person in its time."
    QUESTION_CANCELLED "A question to a person was taken back before anybody answered."
    HISTORY_TOO_LARGE "The payloads in the history of the run would be larger than 128 MiB together."
}
