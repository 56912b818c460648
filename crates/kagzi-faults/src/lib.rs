//! The stage for fault tests: real server and worker processes on a SQLite file or on PostgreSQL, and the
//! means to hurt them.
//!
//! `fault-server` is the server with short leases, `fault-worker` a worker whose workflows follow a
//! [`Script`] and log every real execution. A [`Stage`] owns both, kills only what it started, and ends with
//! [`check_invariants`]. No test sleeps to wait for something: it waits for the event, with a deadline.

mod crash_point;
mod execution_log;
pub mod flaky;
mod flat_events;
mod hand_stream;
mod hand_worker;
mod home;
mod invariants;
mod metrics;
mod process;
mod proxy;
mod script;
#[cfg(feature = "otel")]
pub mod spans;
mod stage;
mod wait;
pub mod witness;

pub use crash_point::{COMMIT_TARGET, CrashLayer, CrashPoint, Victim};
pub use execution_log::{Execution, ExecutionLog, Phase};
pub use flat_events::{
    flatten,
    postgres::{change_flat, flatten_on},
    unflatten,
};
pub use hand_stream::{HandStream, hello};
pub use hand_worker::HandWorker;
pub use home::Home;
pub use invariants::{Evidence, check_invariants, check_invariants_on};
pub use process::{Process, exit_when_stdin_closes};
pub use proxy::Proxy;
pub use script::{Fate, Move, Script, StepPlan, StepResult};
pub use stage::{Binaries, Pace, QUEUE, Stage, start_request};
pub use wait::{DEADLINE, eventually, eventually_within};

/// A stage with this test crate's binaries, which only a test can name: on a SQLite file, or on a PostgreSQL
/// database, where [`Stage::sibling`] starts more servers.
#[macro_export]
macro_rules! stage {
    ($pace:expr) => {
        $crate::Stage::open($crate::binaries!(), $pace, None).await
    };
    ($pace:expr, $database:expr) => {
        $crate::Stage::open($crate::binaries!(), $pace, Some($database)).await
    };
}

/// A stage on a SQLite file whose first server has somebody die at a chosen commit.
#[macro_export]
macro_rules! crashing_stage {
    ($pace:expr, $crash:expr) => {
        $crate::Stage::open_crashing($crate::binaries!(), $pace, $crash).await
    };
}

/// A stage on a SQLite file whose server is watched by `strace`: see [`witness`].
#[macro_export]
macro_rules! traced_stage {
    ($pace:expr) => {
        $crate::Stage::open_traced($crate::binaries!(), $pace).await
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! binaries {
    () => {
        $crate::Binaries {
            server: env!("CARGO_BIN_EXE_fault-server"),
            worker: env!("CARGO_BIN_EXE_fault-worker"),
        }
    };
}
