//! `ctx.step("charge")`: a step with options.

use std::future::Future;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codes;
use crate::retry_policy::RetryPolicy;
use crate::run::context::WorkflowContext;
use crate::run::step::{StepContext, StepOptions, run_step};
use crate::step_error::StepFailure;

/// A step that is being described. Options may come in any order; what is not set is inherited.
///
/// ```
/// # use kagzi::{RetryPolicy, WorkflowContext};
/// # use std::time::Duration;
/// async fn order(ctx: WorkflowContext, cents: u64) -> anyhow::Result<String> {
///     let charged = ctx
///         .step("charge")
///         .timeout(Duration::from_secs(30))
///         .retry_policy(RetryPolicy::default().initial_interval(Duration::from_secs(2)))
///         .attempts(5)
///         .on_retry(|attempt, failure, delay| println!("attempt {attempt}: {failure}, again in {delay:?}"))
///         .run(move |step| async move { Ok(format!("{cents} cents, attempt {}", step.attempt())) })
///         .await?;
///     ctx.step("page").kind("browser_action").run(|_| async { Ok(()) }).await?;
///     ctx.step("cache").before_retry("clear_cache").run(|_| async { Ok(()) }).await?;
///     // The same with the older word: one execution, and no retry.
///     ctx.step("mail").retries(1).run(|_| async { Ok(()) }).await?;
///     Ok(charged)
/// }
/// ```
#[must_use = "a step does nothing until .run(..) is awaited"]
pub struct StepBuilder<'a> {
    context: &'a WorkflowContext,
    name: &'a str,
    options: StepOptions,
}

impl<'a> StepBuilder<'a> {
    pub(crate) fn new(context: &'a WorkflowContext, name: &'a str) -> StepBuilder<'a> {
        let options = StepOptions { repeatable: true, ..Default::default() };
        StepBuilder { context, name, options }
    }

    /// Ends an attempt that takes longer; it is then retried. The code is dropped at its next `.await`:
    /// code that blocks its thread cannot be stopped, so put such work in `spawn_blocking`.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Executions in total, the first included: `attempts(1)` retries nothing.
    pub fn attempts(self, executions: u32) -> Self {
        self.retries(i32::try_from(executions).unwrap_or(i32::MAX))
    }

    /// The same; -1 = no limit. It counts executions, not retries: the name is older than
    /// [`attempts`](Self::attempts).
    pub fn retries(mut self, maximum_attempts: i32) -> Self {
        self.options.retry_policy.maximum_attempts = Some(maximum_attempts);
        self
    }

    /// Sets what the policy sets and keeps the rest.
    pub fn retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.options.retry_policy.merge(policy);
        self
    }

    /// Calls the hook when the server has scheduled a retry: with the attempt that failed, how it failed, and
    /// the delay. At least once per retry: a worker that takes the run over may call it again.
    pub fn on_retry(mut self, hook: impl FnMut(u32, &StepFailure, Duration) + Send + 'static) -> Self {
        self.options.on_retry = Some(Box::new(hook));
        self
    }

    /// What sort of work the step does, e.g. `external_api`, `database`, `browser_action`: with its failures
    /// it says what is to be done before a retry (docs/failures.md).
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.options.before_retry.kind = Some(kind.into());
        self
    }

    /// Before every retry the worker's hook of this name is called, whatever the failure was: see
    /// [`WorkerBuilder::before_retry`](crate::worker::WorkerBuilder::before_retry).
    pub fn before_retry(mut self, hook: impl Into<String>) -> Self {
        self.options.before_retry.hook = Some(hook.into());
        self
    }

    /// Records the step. The closure is called once per attempt.
    pub fn run<T, F, Fut>(self, code: F) -> impl Future<Output = anyhow::Result<T>> + Send + use<T, F, Fut>
    where
        T: Serialize + DeserializeOwned + Send,
        F: FnMut(StepContext) -> Fut + Send,
        Fut: Future<Output = anyhow::Result<T>> + Send,
    {
        let sensible = self.options.retry_policy.check();
        let called = match sensible {
            Ok(()) => self.context.call(self.name),
            Err(message) => Err(StepFailure::new(codes::INVALID_POLICY, message).non_retryable().into()),
        };
        let options = self.options;
        async move { run_step(called?, options, code).await }
    }
}
