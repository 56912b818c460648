//! A thread of its own for the session. Steps are somebody else's code: one that blocks its thread, on a
//! runtime with no other, would silence the heartbeats too, and the server would give its run to a second
//! worker while it still runs.

use std::panic::resume_unwind;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::instrument::WithSubscriber;

use crate::error::Error;
use crate::worker::session::{Session, Setup};

/// Serves on a new thread until drained; the runs themselves are executed by the caller's runtime. Dropped
/// early, it ends the session and drops its runs.
pub(crate) async fn serve(setup: Setup) -> Result<(), Error> {
    let runs_on = Handle::current();
    let dropped = CancellationToken::new();
    let _guard = dropped.clone().drop_guard();
    let (ended, outcome) = oneshot::channel();
    let session = async move {
        tokio::select! {
            // Nobody listens any more if the caller was dropped in the same moment.
            outcome = Session::new(setup, Some(runs_on)).run() => drop(ended.send(outcome)),
            () = dropped.cancelled() => {}
        }
    }
    .with_current_subscriber();
    let thread = thread::Builder::new().name("kagzi-worker".to_owned()).spawn(|| {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime of one thread can be built").block_on(session);
    });
    let thread = thread
        .map_err(|error| Error::InvalidWorker(format!("could not start the worker's own thread: {error}")))?;
    match outcome.await {
        Ok(outcome) => outcome,
        Err(_) => match thread.join() {
            Err(panic) => resume_unwind(panic),
            Ok(()) => unreachable!("the session ends with an outcome unless we are dropped"),
        },
    }
}
