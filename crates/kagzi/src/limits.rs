//! Every bound of the SDK in one place, so that none hides in a loop.

use std::time::Duration;

/// Longest name of a step or scope; the server refuses longer ones too.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// Longest path of a step, its scopes included.
pub(crate) const PATH_BYTES_MAX: usize = 1024;

/// Longest error message sent to the server. A whole HTML page as an error text helps nobody.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4096;

/// Most bytes of JSON kept next to a failure.
pub(crate) const DETAILS_BYTES_MAX: usize = 4096;

/// Longest wait that a Retry-After header can ask for.
pub(crate) const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);

/// The server hears of a step that still runs after this long.
pub(crate) const NOTICE_DELAY: Duration = Duration::from_millis(100);

/// Progress of one step is reported at most this often; what comes in between is replaced by what comes last.
pub(crate) const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// Retries that a worker remembers to have announced to an `on_retry` hook. One that was forgotten is
/// announced again, which the hook must bear anyway.
pub(crate) const ANNOUNCED_LEN_MAX: usize = 4096;

/// Longest time that a codec which asks somebody else may take over one payload.
pub(crate) const CODEC_TIMEOUT: Duration = Duration::from_secs(30);

/// Largest gRPC message accepted from the server. A server's limit on payloads is at most 16 MiB, and a
/// message holds at most an input of a failed run as base64 with a page of journal, or an input and an
/// output.
pub(crate) const DECODE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Longest error code.
pub(crate) const CODE_BYTES_MAX: usize = 255;

/// Steps of one run at once when the server names no number.
pub(crate) const STEP_CONCURRENCY_DEFAULT: u32 = 10;

/// Messages between the runs and the owner of the stream. Full means that the server is slower than
/// we are, or away; the runs then wait.
pub(crate) const INBOX_LEN_MAX: usize = 1024;

/// Messages between the owner of the stream and the transport.
pub(crate) const WIRE_LEN_MAX: usize = 256;

/// Starts, waits and signals that wait to be written to a client's stream.
pub(crate) const ASKS_LEN_MAX: usize = 1024;
/// A start or a signal above this is a call of its own.
pub(crate) const ASK_BYTES_MAX: usize = 16 * 1024;
/// Asks of one message. Every server takes messages of 64 KiB, however low its limit on payloads.
pub(crate) const ASK_BATCH_BYTES_MAX: usize = 32 * 1024;

/// Results that travel with the end of a run. Every server takes as much beside an output of its largest
/// size.
pub(crate) const TRAILING_BYTES_MAX: usize = 32 * 1024;

/// Polls of a workflow function in one go, before others get the thread.
pub(crate) const ROUNDS_MAX: u32 = 64;

/// A replay that waits for something that is not recorded is named in the log after this long,
pub(crate) const STALL_WARNED_AFTER: Duration = Duration::from_secs(1);
/// and blocked after this long.
pub(crate) const STALL_MAX: Duration = Duration::from_secs(60);

/// How often a wait of a run that other steps keep busy looks whether its signal has come.
pub(crate) const WAIT_LOOKED_AT: Duration = Duration::from_secs(10);

/// A wait that nobody sees the end of.
pub(crate) const FAR_FUTURE: Duration = Duration::from_secs(30 * 366 * 24 * 3600);

/// Messages of the server that are heard in one go.
pub(crate) const HEARD_LEN_MAX: usize = 256;

/// Messages taken from the inbox in one go.
pub(crate) const INBOX_BATCH_LEN_MAX: usize = 256;

/// Until a report that the server could not commit is sent again.
pub(crate) const RESEND_DELAY: Duration = Duration::from_millis(250);

/// First and longest wait between two attempts to reach a server.
pub(crate) const RECONNECT_DELAY_MIN: Duration = Duration::from_millis(100);
pub(crate) const RECONNECT_DELAY_MAX: Duration = Duration::from_secs(5);
/// The longest wait while the server still keeps the worker's runs for it, and for how long that is assumed.
pub(crate) const RECONNECT_QUICK: Duration = Duration::from_millis(250);
pub(crate) const RECONNECT_QUICK_FOR: Duration = Duration::from_secs(3);

pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
pub(crate) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);
pub(crate) const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// HTTP/2 windows. The default of 64 KiB would stall the stream on a few larger journals.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 2 * 1024 * 1024;
pub(crate) const CONNECTION_WINDOW_BYTES: u32 = 8 * 1024 * 1024;

/// Used until the server names its interval, and when it names none.
pub(crate) const HEARTBEAT_INTERVAL_DEFAULT: Duration = Duration::from_secs(3);

/// How long draining waits for runs in flight.
pub(crate) const DRAIN_TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);

/// How long a drained worker waits for its last reports to be committed, and then for the goodbye.
pub(crate) const RELEASE_TIMEOUT: Duration = Duration::from_secs(10);
pub(crate) const GOODBYE_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) const MAX_CONCURRENT_DEFAULT: u32 = 100;

/// One call of `start_many` becomes requests of at most this many items and about this many bytes.
/// Half of gRPC's usual limit of 4 MiB, because the last item may itself be as large as a payload may be.
pub(crate) const START_BATCH_LEN_MAX: usize = 500;
pub(crate) const START_BATCH_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The first poll for a result, and all later ones.
pub(crate) const WAIT_POLL_FIRST: Duration = Duration::from_secs(1);
pub(crate) const WAIT_POLL: Duration = Duration::from_secs(30);

/// How long waiting for a result bears a server that cannot be reached.
pub(crate) const OUTAGE_MAX: Duration = Duration::from_secs(60);

/// How long one call of a client waits for its answer, and for how long it is repeated while nobody answers.
/// One poll for the answer to a request: shorter than a call may take.
pub(crate) const ASK_POLL: Duration = Duration::from_secs(20);
/// Names of values that one run may publish, and the largest of them, in bytes.
pub(crate) const VALUES_MAX: usize = 100;
pub(crate) const VALUE_BYTES_MAX: usize = 64 * 1024;
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(30);
pub(crate) const CALL_RETRY_FOR: Duration = Duration::from_secs(10);
/// How much longer than it asked for a long poll waits for its answer.
pub(crate) const WAIT_SLACK: Duration = Duration::from_secs(2);

/// When `ctx.should_continue()` says yes: so much was told to the function, or it weighs half of what the
/// server takes of one history.
pub(crate) const CONTINUE_AFTER_ENDS: u64 = 5_000;
pub(crate) const CONTINUE_AFTER_BYTES: u64 = 64 * 1024 * 1024;
