//! `ctx.poll`: looks until something is there. All looks are one step.

use std::future::Future;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codes;
use crate::retry_policy::RetryPolicy;
use crate::run::context::WorkflowContext;
use crate::run::step::{StepContext, StepOptions, run_step};
use crate::step_error::StepFailure;

/// Longer than any run waits.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 86_400);

impl WorkflowContext {
    /// Looks, waits, looks again, until there is something: for what can be asked and does not call back. No
    /// worker is held in between. However often it looked, it is one step with one entry in the journal, so
    /// a replay costs the same after a thousand looks as after one, and its looks are no retries that other
    /// steps would lack. Each look adds a few small events to the history. Put
    /// [`timeout`](WorkflowContext::timeout) around it to look for so long and no longer.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// # use std::time::Duration;
    /// # async fn payment(order: u64) -> anyhow::Result<Option<u64>> { Ok(Some(order)) }
    /// async fn paid(ctx: WorkflowContext, order: u64) -> anyhow::Result<Option<u64>> {
    ///     let looks = ctx
    ///         .poll("payment")
    ///         .every(Duration::from_secs(30))
    ///         .slower_by(2.0)
    ///         .at_least_every(Duration::from_secs(3600))
    ///         .look_timeout(Duration::from_secs(10))
    ///         .look(move |_| payment(order));
    ///     ctx.timeout(Duration::from_secs(14 * 86_400), looks).await
    /// }
    /// ```
    pub fn poll<'a>(&'a self, name: &'a str) -> PollBuilder<'a> {
        let policy = RetryPolicy::default()
            .maximum_attempts(-1)
            .run_retries_max(-1)
            .run_retry_budget(FOR_EVER)
            .retry_timeout(FOR_EVER);
        let options = StepOptions { repeatable: true, retry_policy: policy, ..Default::default() };
        PollBuilder { context: self, name, options }
    }
}

/// A poll that is being described, see [`WorkflowContext::poll`].
#[must_use = "a poll does nothing until .look(..) is awaited"]
pub struct PollBuilder<'a> {
    context: &'a WorkflowContext,
    name: &'a str,
    options: StepOptions,
}

impl PollBuilder<'_> {
    /// The time between the first two looks; a second, unless it is said.
    pub fn every(mut self, interval: Duration) -> Self {
        self.options.retry_policy.initial_interval = Some(interval);
        self
    }

    /// Every time between two looks is so many times the one before; 2, unless it is said. 1 never slows
    /// down.
    pub fn slower_by(mut self, times: f64) -> Self {
        self.options.retry_policy.backoff_coefficient = Some(times);
        self
    }

    /// The longest time between two looks.
    pub fn at_least_every(mut self, interval: Duration) -> Self {
        self.options.retry_policy.maximum_interval = Some(interval);
        self
    }

    /// Ends a look that takes longer; the next one comes in its time.
    pub fn look_timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Looks. `None` is "not yet". An error is looked past like that, unless it says that another look makes
    /// no sense ([`NonRetryableError`](crate::workflow::NonRetryableError)). What one look knows and the next
    /// one needs goes by [`progress`](StepContext::progress) and
    /// [`last_progress`](StepContext::last_progress).
    pub fn look<T, F, Fut>(
        self,
        mut look: F,
    ) -> impl Future<Output = anyhow::Result<T>> + Send + use<T, F, Fut>
    where
        T: Serialize + DeserializeOwned + Send,
        F: FnMut(StepContext) -> Fut + Send,
        Fut: Future<Output = anyhow::Result<Option<T>>> + Send,
    {
        let called = match self.options.retry_policy.check() {
            Ok(()) => self.context.call(self.name),
            Err(message) => Err(StepFailure::new(codes::INVALID_POLICY, message).non_retryable().into()),
        };
        let options = self.options;
        let code = move |step| {
            let looked = look(step);
            async move {
                let not_yet = || StepFailure::new(codes::NOT_YET, "there is nothing yet");
                Ok(looked.await?.ok_or_else(not_yet)?)
            }
        };
        async move { run_step(called?, options, code).await }
    }
}
