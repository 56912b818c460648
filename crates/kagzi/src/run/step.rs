//! One step: replayed if it was recorded, else executed and recorded before anybody sees its value.

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use kagzi_proto::v1::{self, StepStatus, report};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tracing::Instrument;

use crate::cancellation::CancellationToken;
use crate::retry_policy::{self, RetryPolicy};
use crate::run::before_retry::Wanted;
use crate::run::call::Called;
use crate::run::inside;
use crate::run::journal::Recorded;
use crate::run::progress::Progress;
use crate::run::slot::{Phase, Slot};
use crate::run::state::{RunEnd, RunState};
use crate::run::turns::{Open, permitted, settled};
use crate::run::uplink::Verdict;
use crate::step_error::{Finality, StepError, StepFailure};
use crate::worker::equipment::Equipment;
use crate::{codes, failure, limits, payload, trace};
use kagzi_proto::idempotency_key;

/// What a step's code may want to know about its own execution, and how it says how far it is.
///
/// ```
/// # use kagzi::{StepContext, WorkflowContext};
/// # struct Mailer;
/// # impl Mailer { async fn send(&self, _key: String, _page: u32) -> anyhow::Result<()> { Ok(()) } }
/// async fn send_all(step: StepContext) -> anyhow::Result<u32> {
///     println!("{} of run {}, attempt {}", step.path(), step.run_id(), step.attempt());
///     let mailer = step.state::<Mailer>();
///     let stop = step.cancellation();
///     tokio::spawn(async move { stop.cancelled().await; println!("nobody waits any more") });
///     // Where the attempt before this one came to.
///     let begin = step.last_progress::<u32>().unwrap_or(0);
///     for page in begin..10 {
///         mailer.send(format!("{}/{page}", step.idempotency_key()), page).await?;
///         step.progress(&(page + 1));
///     }
///     step.heartbeat("all are sent");
///     Ok(10)
/// }
///
/// async fn newsletter(ctx: WorkflowContext, _: ()) -> anyhow::Result<u32> {
///     ctx.step("send").run(send_all).await
/// }
/// ```
#[derive(Clone)]
pub struct StepContext {
    run_id: Arc<str>,
    path: Arc<str>,
    attempt: u32,
    /// As it was when the attempt began.
    last_progress: Option<v1::Payload>,
    progress: Arc<Progress>,
}

impl StepContext {
    /// The same for every attempt of this step, and for no other: hand it to receivers that deduplicate.
    pub fn idempotency_key(&self) -> String {
        idempotency_key(&self.run_id, &self.path)
    }

    /// Which execution this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The step's identity in its run, e.g. `item-7/charge#2`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The run that the step belongs to.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// What the worker was given with [`WorkerBuilder::state`](crate::worker::WorkerBuilder::state). Panics
    /// where it was given none of this type.
    pub fn state<T: Send + Sync + 'static>(&self) -> Arc<T> {
        self.progress.run().uplink.equipment.state()
    }

    /// Is cancelled when nobody waits for the step any more: the run was cancelled, parked or taken over, or
    /// the code dropped the step. The step's future is dropped then by itself; this is for what it started
    /// elsewhere, in a thread or a task.
    pub fn cancellation(&self) -> CancellationToken {
        CancellationToken::of(self.progress.cancellation())
    }

    /// Says how far a long step is. It is kept next to the run, visible to people, and the next attempt reads
    /// it with [`last_progress`](StepContext::last_progress). Never waits, and may be called as often as you
    /// like: at most every half second the latest word is sent. The more was said, the rarer it is kept:
    /// after ten hours of short words every six seconds, and large words far less often. It extends no
    /// timeout.
    pub fn progress<P: Serialize + ?Sized>(&self, progress: &P) {
        match payload::encode(progress) {
            Ok(progress) => self.progress.say(progress),
            Err(error) => {
                tracing::warn!(run = %self.run_id, step = %self.path, %error, "progress is no JSON");
            }
        }
    }

    /// The same as [`progress`](StepContext::progress), under its older name. Workers say by themselves that
    /// they live.
    pub fn heartbeat<P: Serialize + ?Sized>(&self, progress: &P) {
        self.progress(progress);
    }

    /// What the attempt before this one said last, if it said anything of this type. The last half second of
    /// an attempt that was killed may be missing.
    pub fn last_progress<P: DeserializeOwned>(&self) -> Option<P> {
        match payload::decode(Some(self.last_progress.as_ref()?)) {
            Ok(progress) => Some(progress),
            Err(error) => {
                tracing::warn!(run = %self.run_id, step = %self.path, %error, "ignored progress of another \
                    type");
                None
            }
        }
    }
}

impl fmt::Debug for StepContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StepContext { run_id, path, attempt, .. } = self;
        write!(f, "StepContext({run_id} {path} attempt {attempt})")
    }
}

/// Told of a retry: the attempt that failed, how, and the delay.
pub(crate) type OnRetry = Box<dyn FnMut(u32, &StepFailure, Duration) + Send>;

/// How a step is executed.
#[derive(Default)]
pub(crate) struct StepOptions {
    pub(crate) timeout: Option<Duration>,
    pub(crate) retry_policy: RetryPolicy,
    /// The code can be started again here. A plain future cannot; it is retried by a replay.
    pub(crate) repeatable: bool,
    pub(crate) on_retry: Option<OnRetry>,
    pub(crate) before_retry: Wanted,
}

impl StepOptions {
    /// Tells the hook, unless this worker has told it before. A panic of the hook is its own affair.
    fn announce(&mut self, run: &RunState, path: &str, retry: Retry<'_>) {
        let Some(hook) = &mut self.on_retry else { return };
        let Retry { attempt, failure, delay } = retry;
        if !run.uplink.announced.is_new(&run.lease.run_id, path, attempt) {
            return;
        }
        let failure = StepFailure::from_proto(failure.clone());
        if catch_unwind(AssertUnwindSafe(|| hook(attempt, &failure, delay))).is_err() {
            tracing::error!(run = %run.lease.run_id, step = %path, attempt, "the on_retry hook panicked");
        }
    }
}

struct Retry<'a> {
    /// The one that failed.
    attempt: u32,
    failure: &'a v1::Failure,
    delay: Duration,
}

/// Runs the step to its end. Between a failed attempt and the next the operation is blocked, so that the
/// run may be parked; user code sees only the final word.
pub(crate) async fn run_step<T, F, Fut>(called: Called, options: StepOptions, start: F) -> anyhow::Result<T>
where
    T: Serialize + DeserializeOwned + Send,
    F: FnMut(StepContext) -> Fut,
    Fut: Future<Output = anyhow::Result<T>> + Send,
{
    let slot = called.slot.clone();
    slot.track(step(called, options, start)).await
}

async fn step<T, F, Fut>(called: Called, mut options: StepOptions, mut start: F) -> anyhow::Result<T>
where
    T: Serialize + DeserializeOwned + Send,
    F: FnMut(StepContext) -> Fut,
    Fut: Future<Output = anyhow::Result<T>> + Send,
{
    let Called { slot, recorded } = called;
    let (run, step) = (&slot.run, &slot.step);
    let (mut first_attempt, mut last_progress, mut due_at) = (1, None, None);
    let mut last_failure = None;
    if let Some(recorded) = recorded {
        match replay::<T>(&slot, recorded).await {
            Replayed::Ended(outcome) => return outcome,
            Replayed::Due { attempts, at, failure, progress } => {
                if let Some(failure) = &failure {
                    let delay = at.saturating_duration_since(Instant::now());
                    options.announce(run, &step.path, Retry { attempt: attempts, failure, delay });
                }
                first_attempt = attempts.saturating_add(1);
                last_progress = progress;
                last_failure = failure.map(Box::new);
                due_at = Some(at);
            }
        }
    }
    let _open = Open::new(&slot);
    // This step's effect may build on results that are not durable yet; a crash would then compute them anew.
    settled(&slot).await;
    if let Some(due_at) = due_at {
        wait(&slot, due_at.saturating_duration_since(Instant::now())).await;
    }
    let mut context = StepContext {
        run_id: run.lease.run_id.as_str().into(),
        path: step.path.as_str().into(),
        attempt: first_attempt,
        last_progress: None,
        progress: Arc::new(Progress::new(run.clone(), step.clone(), last_progress)),
    };
    let timeout = options.timeout.or(run.step_timeout);
    loop {
        let attempt = context.attempt;
        context.last_progress = context.progress.last();
        permitted(&slot).await;
        if run.has_unsent_values() {
            Box::pin(run.send_values()).await;
        }
        run.uplink.step_started(v1::StepStarted {
            lease: Some(run.lease.clone()),
            step: Some(step.clone()),
            attempt,
            timeout_ms: timeout.map_or(0, retry_policy::millis),
            retry_policy: options.retry_policy.to_proto(),
            elapsed_ms: 0,
        });
        let attempted = Attempt { run, progress: &context.progress, step, ended: false };
        let began = Instant::now();
        let (run_id, worker) = (&run.lease.run_id, &run.uplink.worker);
        let (parent, path) = (&run.span, &step.path);
        let span = tracing::info_span!(parent: parent, "step", run = %run_id, step = %path, attempt, %worker);
        let equipment = &run.uplink.equipment;
        equipment.observers.step_began(&context);
        let code = async {
            if let Some(failure) = &last_failure {
                let hooks = equipment.before_retry();
                Box::pin(options.before_retry.perform(hooks, failure, &context)).await?;
            }
            let code = start(context.clone());
            if equipment.has_middleware() {
                Box::pin(equipment.around_step(&context, code)).await
            } else {
                code.await
            }
        };
        let code = code.instrument(span.clone());
        let executed = tokio::select! {
            biased;
            executed = execute((&step.path, equipment), timeout, code) => executed,
            never = context.progress.send() => match never {},
        };
        let elapsed_ms = retry_policy::millis(began.elapsed());
        let recordable = match executed {
            Ok(value) => recordable(run, "the step's result", value).await,
            Err(failure) => Err(failure),
        };
        attempted.end();
        equipment.observers.step_ended(&context, recordable.as_ref().err().map(|failure| &**failure));
        run.turns.lock().end_code(&slot);

        let failure = match recordable {
            Ok((value, result)) => {
                let (step, result) = (Some(step.clone()), Some(result));
                run.ended(&slot, v1::StepRecorded { step, result, attempt, elapsed_ms });
                slot.released().await;
                return Ok(value);
            }
            Err(failure) => run.without_large_details(*failure),
        };
        let not_yet = failure.code == codes::NOT_YET;
        if !not_yet {
            trace::failed(&span, &failure.message);
        }

        context.progress.flush().await;
        let failed = v1::StepFailed {
            step: Some(step.clone()),
            failure: Some(failure.clone()),
            attempt,
            retry_policy: options.retry_policy.to_proto(),
            elapsed_ms,
        };
        run.ask(&slot, report::Body::StepFailed(Box::new(failed)));
        match slot.heard().await {
            Verdict::Retry { delay, attempt: failed } => {
                let failed = attempt.max(failed);
                let delay_ms = retry_policy::millis(delay);
                span.in_scope(|| {
                    if not_yet {
                        return tracing::debug!(delay_ms, "looks again later");
                    }
                    let v1::Failure { code, class, message: error, .. } = &failure;
                    tracing::warn!(delay_ms, %code, %class, %error, "step failed, will be retried");
                });
                options.announce(run, &step.path, Retry { attempt: failed, failure: &failure, delay });
                if !options.repeatable {
                    never(retried_by_replay(&slot, delay).await)
                }
                wait(&slot, delay).await;
                last_failure = Some(Box::new(failure));
                context.attempt = failed.saturating_add(1);
            }
            Verdict::Final { attempts, finality } => {
                let finality = Finality::from_wire(finality, &failure);
                span.in_scope(|| {
                    let v1::Failure { code, class, message: error, .. } = &failure;
                    tracing::warn!(attempts, %code, %class, %error, "step failed for good");
                });
                return Err(StepError::new(step.path.clone(), failure, attempts, finality).into());
            }
            verdict @ (Verdict::Committed
            | Verdict::Sleeping { .. }
            | Verdict::Waited(_)
            | Verdict::ChildBegan(_)
            | Verdict::Refused { .. }) => never(run.refuse("a failed step", verdict).await),
        }
    }
}

/// A future cannot be begun again; the next execution of the function makes a new one. That comes when
/// nothing else of the run executes, which may be long after the retry is due.
async fn retried_by_replay(slot: &Slot, delay: Duration) -> Infallible {
    slot.set_phase(Phase::Blocked);
    tokio::time::sleep(delay + limits::STALL_WARNED_AFTER).await;
    tracing::warn!(
        run = %slot.run.lease.run_id, step = %slot.step.path,
        "a retry is overdue: ctx.run was given a future, which begins again only with the whole function, \
         and other steps \
         still run; write ctx.step(..).run(|_| ..) to retry it beside them"
    );
    std::future::pending().await
}

/// An attempt whose code runs. Dropped before its end, it tells whoever must hear that nobody waits for it
/// any more.
struct Attempt<'a> {
    run: &'a RunState,
    progress: &'a Progress,
    step: &'a v1::StepRef,
    ended: bool,
}

impl Attempt<'_> {
    fn end(mut self) {
        self.ended = true;
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.progress.cancel();
            self.run.uplink.step_dropped(&self.run.lease, self.step);
        }
    }
}

#[expect(clippy::large_enum_variant, reason = "made once per step and taken apart at once")]
enum Replayed<T> {
    Ended(anyhow::Result<T>),
    /// Not over: the next attempt may begin then.
    Due {
        /// That have ended.
        attempts: u32,
        at: Instant,
        /// Of the last attempt; none if it began and nobody knows how it ended.
        failure: Option<v1::Failure>,
        progress: Option<v1::Payload>,
    },
}

async fn replay<T: DeserializeOwned>(slot: &Arc<Slot>, recorded: Recorded) -> Replayed<T> {
    let Recorded { entry, .. } = recorded;
    let (run, step) = (&slot.run, &slot.step);
    match entry.status() {
        StepStatus::Completed => {
            slot.released().await;
            // Somebody else's code: a panic in it is no reason to take another path either.
            let decoded = catch_unwind(AssertUnwindSafe(|| payload::decode(entry.result.as_ref())));
            let error = match decoded {
                Ok(Ok(value)) => return Replayed::Ended(Ok(value)),
                // The code changed its mind about the type. An error would let it take another path.
                Ok(Err(error)) => run.sayable(&error),
                Err(panic) => failure::of_panic(&*panic).message,
            };
            let message = format!(
                "recorded {} at position {}, but its result cannot be decoded: {error}",
                step.path, step.position
            );
            never(run.halt_here(RunEnd::Blocked(message)).await)
        }
        StepStatus::Failed => {
            slot.released().await;
            let failure = *entry.failure.unwrap_or_default();
            let finality = Finality::from_wire(entry.finality, &failure);
            Replayed::Ended(Err(StepError::new(step.path.clone(), failure, entry.attempts, finality).into()))
        }
        StepStatus::Pending | StepStatus::Running | StepStatus::Unspecified => Replayed::Due {
            attempts: entry.attempts,
            at: run.left_of(entry.remaining_ms),
            failure: entry.failure.map(|failure| *failure),
            progress: entry.progress,
        },
        StepStatus::Sleeping | StepStatus::Waiting => {
            let message =
                format!("recorded {} at position {} as a wait, got a step", step.path, step.position);
            never(run.halt_here(RunEnd::Blocked(message)).await)
        }
    }
}

/// Runs the code once; a panic and a timeout are failures like any other.
async fn execute<T>(
    (path, equipment): (&str, &Equipment),
    timeout: Option<Duration>,
    code: impl Future<Output = anyhow::Result<T>>,
) -> Result<T, Box<v1::Failure>> {
    let mut code = pin!(AssertUnwindSafe(code).catch_unwind());
    let code = poll_fn(|cx| {
        let _mark = inside::enter_step();
        code.as_mut().poll(cx)
    });
    let ended = match timeout {
        None => code.await,
        Some(timeout) => tokio::time::timeout(timeout, code).await.map_err(|_| {
            let message = format!("step '{path}' timed out after {timeout:?}");
            Box::new(failure::new(codes::TIMED_OUT, message, false))
        })?,
    };
    match ended {
        Ok(outcome) => outcome.map_err(|error| Box::new(failure::of_returned(error, equipment))),
        Err(panic) => Err(Box::new(failure::of_panic(&*panic))),
    }
}

/// The value as it will be read back, with its payload. Handing out the decoded value makes the first
/// execution see exactly what a replay sees, and finds a type that cannot be read back before it is recorded.
pub(crate) async fn recordable<T: Serialize + DeserializeOwned>(
    run: &RunState,
    what: &str,
    value: T,
) -> Result<(T, v1::Payload), Box<v1::Failure>> {
    let panicked = |panic: Box<dyn std::any::Any + Send>| Box::new(failure::of_panic(&*panic));
    let invalid = |message| Box::new(failure::new(codes::INVALID_OUTPUT, message, true));
    // `Serialize`, `Deserialize` and codecs are somebody else's code, and their panics are the step's.
    let result = catch_unwind(AssertUnwindSafe(|| payload::encode(&value)))
        .map_err(panicked)?
        .map_err(|error| invalid(format!("{what} cannot be encoded: {error}")))?;
    drop(value);
    let encoded = run.encode(what, result.clone()).await?;
    let value = catch_unwind(AssertUnwindSafe(|| payload::decode(Some(&result))))
        .map_err(panicked)?
        .map_err(|error| invalid(format!("{what} cannot be read back: {error}")))?;
    Ok((value, encoded))
}

/// Blocked until due. Goes on only if the run is still held by then, because other steps run.
pub(crate) async fn wait(slot: &Slot, remaining: Duration) {
    if remaining.is_zero() {
        return;
    }
    slot.set_phase(Phase::Blocked);
    tokio::time::sleep(remaining).await;
    slot.set_phase(Phase::Waits);
}

/// Turns "does not return" into any type.
pub(crate) fn never<T>(infallible: Infallible) -> T {
    match infallible {}
}
