//! One step: replayed if it was recorded, else executed and recorded before anybody sees its value.

use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use kagzi_proto::v1::{self, StepStatus, report};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::retry_policy::{self, RetryPolicy, from_millis};
use crate::run::activity::Operation;
use crate::run::context::Called;
use crate::run::state::{RunEnd, RunState};
use crate::run::uplink::Verdict;
use crate::step_error::StepError;
use crate::{codes, failure, payload};
use kagzi_proto::idempotency_key;

/// What a step's code may want to know about its own execution.
#[derive(Debug, Clone)]
pub struct StepContext {
    run_id: Arc<str>,
    path: Arc<str>,
    attempt: u32,
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
}

/// How a step is executed.
#[derive(Debug, Default)]
pub(crate) struct StepOptions {
    pub(crate) timeout: Option<Duration>,
    pub(crate) retry_policy: RetryPolicy,
    /// The code can be started again here. A plain future cannot; it is retried by a replay.
    pub(crate) repeatable: bool,
}

/// Runs the step to its end. Between a failed attempt and the next the operation is blocked, so that the
/// run may be parked; user code sees only the final word.
pub(crate) async fn run_step<T, F, Fut>(
    called: Called,
    options: StepOptions,
    mut start: F,
) -> anyhow::Result<T>
where
    T: Serialize + DeserializeOwned,
    F: FnMut(StepContext) -> Fut,
    Fut: Future<Output = anyhow::Result<T>>,
{
    let Called { run, step, recorded } = called;
    let mut operation = run.activity.begin();
    let mut context =
        StepContext { run_id: run.lease.run_id.as_str().into(), path: step.path.as_str().into(), attempt: 1 };
    if let Some(entry) = recorded {
        match replay::<T>(&run, &step, entry).await {
            Replayed::Ended(outcome) => return outcome,
            Replayed::Due { attempt, remaining } => {
                wait(&mut operation, remaining).await;
                context.attempt = attempt;
            }
        }
    }
    loop {
        let attempt = context.attempt;
        let permit = run.step_permits.acquire().await.expect("the permits of a run are never closed");
        run.uplink.step_started(v1::StepStarted {
            lease: Some(run.lease.clone()),
            step: Some(step.clone()),
            attempt,
            ..v1::StepStarted::default()
        });
        let began = Instant::now();
        let timeout = options.timeout.or(run.step_timeout);
        let executed = execute(&step.path, timeout, async { start(context.clone()).await }).await;
        drop(permit);
        let elapsed_ms = retry_policy::millis(began.elapsed());

        let failure = match executed.and_then(|value| recordable(&run, &value)) {
            Ok((value, result)) => {
                let (step, result) = (Some(step.clone()), Some(result));
                let recorded = v1::StepRecorded { step, result, attempt, elapsed_ms };
                match run.submit(report::Body::StepRecorded(recorded)).await {
                    Verdict::Committed => return Ok(value),
                    // The effect has happened but its result cannot be kept: trying again would
                    // repeat the effect for ever.
                    Verdict::Refused { code, message } if code == codes::PAYLOAD_TOO_LARGE => {
                        failure::new(codes::PAYLOAD_TOO_LARGE, message, true)
                    }
                    verdict @ (Verdict::Refused { .. }
                    | Verdict::Retry { .. }
                    | Verdict::Final { .. }
                    | Verdict::Sleeping { .. }) => never(run.refuse("the result of a step", verdict).await),
                }
            }
            Err(failure) => run.without_large_details(failure),
        };

        let failed = v1::StepFailed {
            step: Some(step.clone()),
            failure: Some(failure.clone()),
            attempt,
            retry_policy: options.retry_policy.to_proto(),
            elapsed_ms,
        };
        match run.submit(report::Body::StepFailed(failed)).await {
            Verdict::Retry { delay, attempt: failed } => {
                if !options.repeatable {
                    operation.block();
                    std::future::pending::<()>().await;
                }
                wait(&mut operation, delay).await;
                context.attempt = attempt.max(failed).saturating_add(1);
            }
            Verdict::Final { attempts } => return Err(final_error(step.path, failure, attempts).into()),
            verdict @ (Verdict::Committed | Verdict::Sleeping { .. } | Verdict::Refused { .. }) => {
                never(run.refuse("a failed step", verdict).await)
            }
        }
    }
}

enum Replayed<T> {
    Ended(anyhow::Result<T>),
    /// Not over: the next attempt may begin after this long.
    Due {
        attempt: u32,
        remaining: Duration,
    },
}

async fn replay<T: DeserializeOwned>(
    run: &RunState,
    step: &v1::StepRef,
    entry: v1::JournalEntry,
) -> Replayed<T> {
    match entry.status() {
        StepStatus::Completed => match payload::decode(entry.result.as_ref()) {
            Ok(value) => Replayed::Ended(Ok(value)),
            // The code changed its mind about the type. An error would let it take another path.
            Err(error) => {
                let message = format!(
                    "recorded {} at position {}, but its result cannot be decoded: {error}",
                    step.path, step.position
                );
                never(run.halt_here(RunEnd::Blocked(message)).await)
            }
        },
        StepStatus::Failed => {
            let failure = entry.failure.unwrap_or_default();
            Replayed::Ended(Err(final_error(step.path.clone(), failure, entry.attempts).into()))
        }
        StepStatus::Pending | StepStatus::Running | StepStatus::Unspecified => Replayed::Due {
            attempt: entry.attempts.saturating_add(1),
            remaining: from_millis(entry.remaining_ms),
        },
        StepStatus::Sleeping => {
            let message =
                format!("recorded {} at position {} as a sleep, got a step", step.path, step.position);
            never(run.halt_here(RunEnd::Blocked(message)).await)
        }
    }
}

/// Runs the code once; a panic and a timeout are failures like any other.
async fn execute<T>(
    path: &str,
    timeout: Option<Duration>,
    code: impl Future<Output = anyhow::Result<T>>,
) -> Result<T, v1::Failure> {
    let code = AssertUnwindSafe(code).catch_unwind();
    let ended = match timeout {
        None => code.await,
        Some(timeout) => tokio::time::timeout(timeout, code).await.map_err(|_| {
            let message = format!("step '{path}' timed out after {timeout:?}");
            failure::new(codes::TIMEOUT, message, false)
        })?,
    };
    match ended {
        Ok(outcome) => outcome.map_err(|error| failure::of_error(&error)),
        Err(panic) => Err(failure::of_panic(&*panic)),
    }
}

/// The value as it will be read back, with its payload. Handing out the decoded value makes the first
/// execution see exactly what a replay sees, and finds a type that cannot be read back before it is recorded.
fn recordable<T: Serialize + DeserializeOwned>(
    run: &RunState,
    value: &T,
) -> Result<(T, v1::Payload), v1::Failure> {
    let invalid = |message| failure::new(codes::INVALID_OUTPUT, message, true);
    let result = payload::encode(value)
        .map_err(|error| invalid(format!("the step's result cannot be encoded: {error}")))?;
    if let Some(failure) = run.too_large("the step's result", &result) {
        return Err(failure);
    }
    let value = payload::decode(Some(&result))
        .map_err(|error| invalid(format!("the step's result cannot be read back: {error}")))?;
    Ok((value, result))
}

/// Blocked until due. Goes on only if the run is still held by then, because other steps run.
pub(crate) async fn wait(operation: &mut Operation<'_>, remaining: Duration) {
    if remaining.is_zero() {
        return;
    }
    operation.block();
    tokio::time::sleep(remaining).await;
    operation.resume();
}

fn final_error(step: String, failure: v1::Failure, attempts: u32) -> StepError {
    StepError { step, code: failure.code, message: failure.message, attempts }
}

/// Turns "does not return" into any type.
pub(crate) fn never<T>(infallible: Infallible) -> T {
    match infallible {}
}
