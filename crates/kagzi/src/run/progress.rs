//! How far a long step is: told by its code, kept by the server, read by the next attempt.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

use kagzi_proto::v1::{self, report};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::limits;
use crate::run::state::RunState;

/// The progress of one step over all its attempts in this execution of the run.
pub(crate) struct Progress {
    run: Arc<RunState>,
    step: v1::StepRef,
    said: Mutex<Said>,
    /// There is something to send.
    news: Notify,
    /// Made only for code that asks for it.
    cancellation: OnceLock<CancellationToken>,
}

#[derive(Default)]
struct Said {
    /// The last word, whether it was sent or not.
    last: Option<v1::Payload>,
    unsent: bool,
}

impl Progress {
    /// `last` is what the attempt before said.
    pub(crate) fn new(run: Arc<RunState>, step: v1::StepRef, last: Option<v1::Payload>) -> Progress {
        let said = Mutex::new(Said { last, unsent: false });
        Progress { run, step, said, news: Notify::new(), cancellation: OnceLock::new() }
    }

    pub(crate) fn run(&self) -> &RunState {
        &self.run
    }

    /// Is cancelled when nobody waits for the step any more.
    pub(crate) fn cancellation(&self) -> CancellationToken {
        self.cancellation.get_or_init(CancellationToken::new).clone()
    }

    pub(crate) fn cancel(&self) {
        if let Some(cancellation) = self.cancellation.get() {
            cancellation.cancel();
        }
    }

    pub(crate) fn last(&self) -> Option<v1::Payload> {
        self.said.lock().last.clone()
    }

    /// Never waits, so that it may be called from code that blocks. The latest word replaces an unsent one.
    pub(crate) fn say(&self, progress: v1::Payload) {
        if let Some(refused) = self.run.too_large("the step's progress", &progress) {
            return self.drop_word(&refused);
        }
        *self.said.lock() = Said { last: Some(progress), unsent: true };
        self.news.notify_one();
    }

    fn drop_word(&self, refused: &v1::Failure) {
        tracing::warn!(run = %self.run.lease.run_id, step = %self.step.path, "{}", refused.message);
    }

    /// Sends what is said, the first word at once and then one per interval. Runs beside the step's code.
    pub(crate) async fn send(&self) -> Infallible {
        loop {
            self.news.notified().await;
            self.flush().await;
            tokio::time::sleep(limits::PROGRESS_INTERVAL).await;
        }
    }

    /// Sends the last word if it was not sent. It is durable before anything that is reported later.
    pub(crate) async fn flush(&self) {
        let progress = {
            let mut said = self.said.lock();
            if !std::mem::take(&mut said.unsent) {
                return;
            }
            said.last.clone()
        };
        let Some(progress) = progress else { return };
        let progress = match self.run.encode("the step's progress", progress).await {
            Ok(progress) => Some(progress),
            Err(refused) => return self.drop_word(&refused),
        };
        let progressed = v1::StepProgressed { step: Some(self.step.clone()), progress };
        self.run.uplink.tell(self.run.lease.clone(), report::Body::StepProgressed(progressed)).await;
    }
}
