//! What all operations of one run share.

use std::convert::Infallible;
use std::time::Duration;

use kagzi_proto::v1::{self, report};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::run::activity::Activity;
use crate::run::journal::Journal;
use crate::run::uplink::{Uplink, Verdict};
use crate::{codes, failure, limits, retry_policy};

/// One leased run.
pub(crate) struct RunState {
    pub(crate) lease: v1::LeaseRef,
    pub(crate) namespace: String,
    pub(crate) business_id: String,
    /// Which execution of the run this is, from 1.
    pub(crate) attempt: u32,
    /// For steps that set none; None = no limit.
    pub(crate) step_timeout: Option<Duration>,
    pub(crate) step_permits: Semaphore,
    pub(crate) journal: Mutex<Journal>,
    pub(crate) activity: Activity,
    pub(crate) uplink: Uplink,
    halted: Mutex<Option<RunEnd>>,
}

/// How the execution of a run ends on this worker.
#[derive(Debug)]
pub(crate) enum RunEnd {
    Completed(v1::Payload),
    Failed(v1::Failure),
    Parked,
    /// The code no longer matches the journal.
    Blocked(String),
    /// Not executed at all.
    Released(String),
}

impl RunState {
    pub(crate) fn new(assign: v1::Assign, uplink: Uplink) -> RunState {
        let step_concurrency_max = match assign.step_concurrency_max {
            0 => limits::STEP_CONCURRENCY_DEFAULT,
            max => max,
        };
        let step_timeout = retry_policy::from_millis(assign.start_to_close_timeout_ms);
        RunState {
            lease: assign.lease.unwrap_or_default(),
            namespace: assign.namespace_id,
            business_id: assign.business_id,
            attempt: assign.attempts.saturating_add(1),
            step_timeout: Some(step_timeout).filter(|timeout| !timeout.is_zero()),
            step_permits: Semaphore::new((step_concurrency_max as usize).min(Semaphore::MAX_PERMITS)),
            journal: Mutex::new(Journal::new(assign.journal)),
            activity: Activity::default(),
            uplink,
            halted: Mutex::new(None),
        }
    }

    /// Details that the server would refuse are left out: the failure itself must get through.
    pub(crate) fn without_large_details(&self, mut failure: v1::Failure) -> v1::Failure {
        failure.details.take_if(|details| self.too_large("the details", details).is_some());
        failure
    }

    pub(crate) async fn submit(&self, body: report::Body) -> Verdict {
        self.uplink.submit(self.lease.clone(), body).await
    }

    /// Ends the execution from inside an operation. The first reason counts.
    pub(crate) fn halt(&self, end: RunEnd) {
        self.halted.lock().get_or_insert(end);
        self.activity.wake_executor();
    }

    /// The same for an operation that cannot go on: user code must not see anything any more.
    pub(crate) async fn halt_here(&self, end: RunEnd) -> Infallible {
        self.halt(end);
        std::future::pending().await
    }

    /// The server's word makes no sense for what was reported; going on would be guessing.
    pub(crate) async fn refuse(&self, reported: &str, verdict: Verdict) -> Infallible {
        let failure = match verdict {
            Verdict::Refused { code, message } => {
                failure::new(&code, format!("the server refused {reported}: {message}"), true)
            }
            Verdict::Committed | Verdict::Retry { .. } | Verdict::Final { .. } | Verdict::Sleeping { .. } => {
                let message = format!("the server answered {reported} with {verdict:?}");
                failure::new(codes::ERROR, message, false)
            }
        };
        self.halt_here(RunEnd::Failed(failure)).await
    }

    pub(crate) fn take_halt(&self) -> Option<RunEnd> {
        self.halted.lock().take()
    }

    /// The failure of a payload that the server would refuse.
    pub(crate) fn too_large(&self, what: &str, payload: &v1::Payload) -> Option<v1::Failure> {
        let bytes_max = self.uplink.payload_bytes_max()?;
        let bytes = payload.data.len() as u64;
        (bytes > bytes_max).then(|| {
            let message = format!("{what} has {bytes} bytes, at most {bytes_max} are allowed");
            failure::new(codes::PAYLOAD_TOO_LARGE, message, true)
        })
    }
}
