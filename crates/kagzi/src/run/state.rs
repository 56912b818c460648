//! What all operations of one run share.

use std::convert::Infallible;
use std::time::{Duration, SystemTime};

use kagzi_proto::v1::{self, report};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::run::activity::Activity;
use crate::run::journal::Journal;
use crate::run::trailing::Trailing;
use crate::run::uplink::{Uplink, Verdict};
use crate::{codes, failure, limits, retry_policy};

/// One leased run.
pub(crate) struct RunState {
    pub(crate) lease: v1::LeaseRef,
    pub(crate) namespace: String,
    pub(crate) business_id: String,
    /// The schedule that started the run and its nominal time.
    pub(crate) scheduled: Option<(String, SystemTime)>,
    /// Which execution of the run this is, from 1.
    pub(crate) attempt: u32,
    /// For steps that set none; None = no limit.
    pub(crate) step_timeout: Option<Duration>,
    pub(crate) step_permits: Semaphore,
    pub(crate) journal: Mutex<Journal>,
    pub(crate) activity: Activity,
    pub(crate) uplink: Uplink,
    /// Of this execution: parent of its steps, also of those that user code spawns elsewhere.
    pub(crate) span: tracing::Span,
    pub(crate) trailing: Trailing,
    halted: Mutex<Option<RunEnd>>,
}

/// How the execution of a run ends on this worker.
#[derive(Debug)]
pub(crate) enum RunEnd {
    /// With the results that were not sent before.
    Completed(v1::Payload, Vec<v1::StepRecorded>),
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
            scheduled: assign
                .scheduled_at
                .and_then(|at| SystemTime::try_from(at).ok())
                .map(|at| (assign.schedule_id, at)),
            attempt: assign.attempts.saturating_add(1),
            step_timeout: Some(step_timeout).filter(|timeout| !timeout.is_zero()),
            step_permits: Semaphore::new((step_concurrency_max as usize).min(Semaphore::MAX_PERMITS)),
            journal: Mutex::new(Journal::new(assign.journal)),
            activity: Activity::default(),
            uplink,
            span: tracing::Span::current(),
            trailing: Trailing::default(),
            halted: Mutex::new(None),
        }
    }

    /// Details that the server would refuse are left out: the failure itself must get through.
    pub(crate) fn without_large_details(&self, mut failure: v1::Failure) -> v1::Failure {
        failure.details.take_if(|details| self.too_large("the details", details).is_some());
        failure
    }

    /// Failures are encoded here, the last place that all of them pass; payloads were, when they were measured.
    pub(crate) fn submit(&self, mut body: report::Body) -> impl Future<Output = Verdict> {
        match &mut body {
            report::Body::StepFailed(failed) => self.encode_failure(&mut failed.failure),
            report::Body::RunFailed(failed) => self.encode_failure(&mut failed.failure),
            report::Body::StepRecorded(_)
            | report::Body::StepProgressed(_)
            | report::Body::StepsRecorded(_)
            | report::Body::StepClosed(_)
            | report::Body::SleepScheduled(_)
            | report::Body::SleepOver(_)
            | report::Body::LabelSet(_)
            | report::Body::RunCompleted(_)
            | report::Body::RunParked(_)
            | report::Body::RunReleased(_)
            | report::Body::RunBlocked(_) => {}
        }
        self.uplink.submit(self.lease.clone(), body)
    }

    fn encode_failure(&self, failure: &mut Option<v1::Failure>) {
        *failure = failure.take().map(|failure| self.uplink.codecs.encode_failure(failure));
    }

    /// The payload as it is sent, or the failure of one that cannot be.
    pub(crate) fn encode(&self, what: &str, payload: v1::Payload) -> Result<v1::Payload, Box<v1::Failure>> {
        let encoded = self.uplink.codecs.encode(payload).map_err(|error| {
            let message = format!("{what} cannot be encoded: {error}");
            Box::new(failure::new(codes::INVALID_OUTPUT, message, true))
        })?;
        match self.too_large(what, &encoded) {
            Some(failure) => Err(Box::new(failure)),
            None => Ok(encoded),
        }
    }

    /// Takes a result over from a step; see [`Trailing`].
    pub(crate) fn hold(&self, recorded: v1::StepRecorded) {
        if self.trailing.hold(recorded) {
            self.activity.wake_executor();
        }
    }

    /// Sends a result that was held back. One that the server refuses ends the run: the code has gone on with it.
    pub(crate) async fn send_trailing(&self, recorded: v1::StepRecorded) {
        match self.submit(report::Body::StepRecorded(recorded)).await {
            Verdict::Committed => self.trailing.acknowledged(),
            verdict @ (Verdict::Refused { .. }
            | Verdict::Retry { .. }
            | Verdict::Final { .. }
            | Verdict::Sleeping { .. }) => self.halt(refused("the result of a step", verdict)),
        }
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
        self.halt_here(refused(reported, verdict)).await
    }

    pub(crate) fn take_halt(&self) -> Option<RunEnd> {
        self.halted.lock().take()
    }

    /// An error in words that may be stored in the clear: those of a JSON error quote the payload.
    pub(crate) fn sayable(&self, error: &impl ToString) -> String {
        if self.uplink.codecs.is_empty() {
            return error.to_string();
        }
        tracing::warn!(run = %self.lease.run_id, error = %error.to_string(), "a payload is of another type");
        "it is of another type (the worker's log says more)".to_owned()
    }

    /// The failure of a payload that the server would refuse.
    pub(crate) fn too_large(&self, what: &str, payload: &v1::Payload) -> Option<v1::Failure> {
        let bytes_max = self.uplink.payload_bytes_max()?;
        let bytes = payload.data.len() as u64;
        (bytes > bytes_max).then(|| {
            // The server's own words, found before the bytes are sent.
            let message = format!(
                "{what} exceeds maximum size of {bytes_max} bytes ({bytes} bytes). Do not use Kagzi for blob storage. \
                 Store large data elsewhere and pass a reference."
            );
            failure::new(codes::PAYLOAD_TOO_LARGE, message, true)
        })
    }
}

fn refused(reported: &str, verdict: Verdict) -> RunEnd {
    RunEnd::Failed(match verdict {
        Verdict::Refused { code, message } => {
            failure::new(&code, format!("the server refused {reported}: {message}"), true)
        }
        Verdict::Committed | Verdict::Retry { .. } | Verdict::Final { .. } | Verdict::Sleeping { .. } => {
            let message = format!("the server answered {reported} with {verdict:?}");
            failure::new(codes::ERROR, message, false)
        }
    })
}
