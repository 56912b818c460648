//! What all operations of one run share.

use std::collections::HashSet;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kagzi_proto::v1::{self, report};
use parking_lot::Mutex;
use std::task::Waker;
use tokio::time::Instant;

use crate::run::journal::Journal;
use crate::run::mailbox::Mailbox;
use crate::run::missed::Missed;
use crate::run::published::Published;
use crate::run::slot::FunctionWaker;
use crate::run::turns::Turns;
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
    /// Rises when the run continues in place, from 1.
    pub(crate) generation: u32,
    /// For steps that set none; None = no limit.
    pub(crate) step_timeout: Option<Duration>,
    pub(crate) journal: Mutex<Journal>,
    pub(crate) turns: Mutex<Turns>,
    /// Those that nobody looked at in their turn.
    pub(crate) missed: Missed,
    /// Tells whether the function was woken, and the waker made of it that the function is polled with.
    pub(crate) function: Arc<FunctionWaker>,
    pub(crate) waker: Waker,
    /// Given to `ctx.spawn` and not yet taken over by the executor.
    pub(crate) spawned: Mutex<Vec<BoxFuture<'static, ()>>>,
    /// When the journal was received: what is left of its waits counts from here.
    received: Instant,
    pub(crate) uplink: Uplink,
    /// Of this execution: parent of its steps, also of those that user code spawns elsewhere.
    pub(crate) span: tracing::Span,
    halted: Mutex<Option<RunEnd>>,
    /// Values that it publishes, and the names of its promises.
    pub(crate) published: Mutex<Published>,
    pub(crate) promises: Mutex<HashSet<String>>,
    /// Hints that something has come for one of its waits.
    pub(crate) mailbox: Mutex<Mailbox>,
}

/// How the execution of a run ends on this worker.
#[derive(Debug)]
pub(crate) enum RunEnd {
    /// With the results that were not sent before.
    Completed(v1::Payload, Vec<v1::StepRecorded>),
    /// It begins anew with this input, with the results that were not sent before.
    Continued(v1::Payload, Vec<v1::StepRecorded>),
    /// With the path of the step whose error the function returned, if it was one.
    Failed { failure: v1::Failure, step: String },
    /// Until one of these is due, or the last of them.
    Parked(Vec<String>, v1::Wake),
    /// It was parked by the question whether something has come: there is nothing more to say.
    Left,
    /// The code no longer matches the journal.
    Blocked(String),
    /// Not executed at all.
    Released(String),
}

impl RunEnd {
    pub(crate) fn failed(failure: v1::Failure) -> RunEnd {
        RunEnd::Failed { failure, step: String::new() }
    }
}

impl RunState {
    pub(crate) fn new(
        assign: v1::Assign,
        weights: Vec<u64>,
        uplink: Uplink,
        span: tracing::Span,
    ) -> RunState {
        let step_concurrency_max = match assign.step_concurrency_max {
            0 => limits::STEP_CONCURRENCY_DEFAULT,
            max => max,
        };
        let step_timeout = retry_policy::from_millis(assign.start_to_close_timeout_ms);
        let journal = Journal::weighed(assign.journal, weights);
        let turns = Turns::new(journal.told_len(), step_concurrency_max as usize);
        let function = Arc::new(FunctionWaker::default());
        // It is polled a first time without having been woken by anybody.
        function.call();
        RunState {
            lease: assign.lease.unwrap_or_default(),
            namespace: assign.namespace_id,
            business_id: assign.business_id,
            scheduled: assign
                .scheduled_at
                .and_then(|at| SystemTime::try_from(at).ok())
                .map(|at| (assign.schedule_id, at)),
            attempt: assign.attempts.saturating_add(1),
            generation: assign.generation.max(1),
            step_timeout: Some(step_timeout).filter(|timeout| !timeout.is_zero()),
            journal: Mutex::new(journal),
            turns: Mutex::new(turns),
            missed: Missed::default(),
            waker: Waker::from(function.clone()),
            function,
            spawned: Mutex::default(),
            received: Instant::now(),
            uplink,
            span,
            halted: Mutex::new(None),
            published: Mutex::default(),
            promises: Mutex::default(),
            mailbox: Mutex::default(),
        }
    }

    /// Details that the server would refuse are left out: the failure itself must get through.
    pub(crate) fn without_large_details(&self, mut failure: v1::Failure) -> v1::Failure {
        failure.details.take_if(|details| self.too_large("the details", details).is_some());
        failure
    }

    /// Failures are encoded here, the last place that all of them pass; payloads were, when they were
    /// measured.
    pub(crate) async fn submit(&self, mut body: report::Body) -> Verdict {
        match &mut body {
            report::Body::StepFailed(failed) => self.encode_failure(&mut failed.failure).await,
            report::Body::RunFailed(failed) => self.encode_failure(&mut failed.failure).await,
            report::Body::StepRecorded(_)
            | report::Body::StepProgressed(_)
            | report::Body::StepsRecorded(_)
            | report::Body::StepClosed(_)
            | report::Body::SleepScheduled(_)
            | report::Body::SleepOver(_)
            | report::Body::LabelSet(_)
            | report::Body::SignalAwaited(_)
            | report::Body::PromiseMade(_)
            | report::Body::ValueSet(_)
            | report::Body::StartChild(_)
            | report::Body::RunCompleted(_)
            | report::Body::RunContinued(_)
            | report::Body::RunParked(_)
            | report::Body::RunReleased(_)
            | report::Body::RunBlocked(_) => {}
        }
        // What the code published before is durable no later.
        if self.has_unsent_values() {
            Box::pin(self.send_values()).await;
        }
        let mut verdict = self.uplink.submit(self.lease.clone(), body).await;
        // Decoded here, while the function stands still: once it hears of something it must go on at once, or
        // a codec that takes its time would change the order of what is heard.
        let waited = match &mut verdict {
            Verdict::Waited(waited) => Some(&mut **waited),
            Verdict::ChildBegan(began) => began.waited.as_mut(),
            Verdict::Committed
            | Verdict::Retry { .. }
            | Verdict::Final { .. }
            | Verdict::Sleeping { .. }
            | Verdict::Refused { .. } => None,
        };
        if let Some(waited) = waited
            && !self.uplink.codecs.is_empty()
        {
            Box::pin(self.decode_waited(waited)).await;
        }
        verdict
    }

    async fn encode_failure(&self, failure: &mut Option<v1::Failure>) {
        if let Some(plain) = failure.take_if(|_| !self.uplink.codecs.is_empty()) {
            *failure = Some(Box::pin(self.uplink.codecs.encode_failure(plain)).await);
        }
    }

    /// What somebody sent and cannot be decoded here is an error that the code can catch.
    async fn decode_waited(&self, waited: &mut v1::Waited) {
        let codecs = &self.uplink.codecs;
        if let Some(failure) = &mut waited.failure {
            if let Err(error) = codecs.decode_failure(failure).await {
                tracing::debug!(%error, "a failure that somebody sent is shown as it came");
            }
            return;
        }
        let Some(signal) = waited.signal.take() else { return };
        let decoding = AssertUnwindSafe(async { codecs.decode(signal).await });
        let message = match decoding.catch_unwind().await {
            Ok(Ok(signal)) => return waited.signal = Some(signal),
            Ok(Err(error)) => format!("the signal cannot be decoded: {error}"),
            Err(panic) => format!("a codec panicked: {}", failure::of_panic(&*panic).message),
        };
        waited.failure = Some(failure::new(codes::INVALID_INPUT, message, true));
    }

    /// The payload as it is sent, or the failure of one that cannot be. A codec is somebody else's code, and
    /// its panic is such a failure.
    pub(crate) async fn encode(
        &self,
        what: &str,
        payload: v1::Payload,
    ) -> Result<v1::Payload, Box<v1::Failure>> {
        let encoding = AssertUnwindSafe(async { self.uplink.codecs.encode(payload).await });
        let encoded = encoding.catch_unwind().await;
        let encoded = encoded.map_err(|panic| Box::new(failure::of_panic(&*panic)))?.map_err(|error| {
            let message = format!("{what} cannot be encoded: {error}");
            Box::new(failure::new(codes::INVALID_OUTPUT, message, true))
        })?;
        self.fitting(what, encoded)
    }

    /// The payload, unless the server would refuse it.
    pub(crate) fn fitting(&self, what: &str, sent: v1::Payload) -> Result<v1::Payload, Box<v1::Failure>> {
        match self.too_large(what, &sent) {
            Some(failure) => Err(Box::new(failure)),
            None => Ok(sent),
        }
    }

    /// What tells this run from others on a thread's mark.
    pub(crate) fn key(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// When a wait of the journal is over of which so much was left.
    pub(crate) fn left_of(&self, remaining_ms: i64) -> Instant {
        let remaining = retry_policy::from_millis(remaining_ms);
        self.received.checked_add(remaining).unwrap_or(self.received + limits::FAR_FUTURE)
    }

    /// Ends the execution from inside an operation. The first reason counts.
    pub(crate) fn halt(&self, end: RunEnd) {
        self.halted.lock().get_or_insert(end);
        self.function.wake_executor();
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
        let _ = error;
        "it is of another type".to_owned()
    }

    /// The failure of a payload that the server would refuse.
    pub(crate) fn too_large(&self, what: &str, payload: &v1::Payload) -> Option<v1::Failure> {
        let bytes_max = self.uplink.payload_bytes_max()?;
        let bytes = payload.data.len() as u64;
        (bytes > bytes_max).then(|| {
            // The server's own words, found before the bytes are sent.
            let message = format!(
                "{what} exceeds maximum size of {bytes_max} bytes ({bytes} bytes). Do not use Kagzi for \
                 blob storage. \
                 Store large data elsewhere and pass a reference."
            );
            failure::new(codes::PAYLOAD_TOO_LARGE, message, true)
        })
    }
}

pub(crate) fn refused(reported: &str, verdict: Verdict) -> RunEnd {
    RunEnd::failed(match verdict {
        Verdict::Refused { code, message } => {
            failure::new(&code, format!("the server refused {reported}: {message}"), true)
        }
        Verdict::Committed
        | Verdict::Retry { .. }
        | Verdict::Final { .. }
        | Verdict::Sleeping { .. }
        | Verdict::ChildBegan(_)
        | Verdict::Waited(_) => {
            let message = format!("the server answered {reported} with {verdict:?}");
            failure::new(codes::ERROR, message, false)
        }
    })
}
