//! Continuing in place: the function ends and begins anew with another input, as the same run.

use kagzi_proto::v1;
use serde::Serialize;

use crate::run::context::WorkflowContext;
use crate::{codes, limits, payload};

/// What [`WorkflowContext::continue_as_new`] returns as an error, so that it ends the function by `return` or
/// `?`. It is no failure: middleware that counts failures asks for this type first.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the run begins anew with another input: return this from the workflow function itself")]
pub struct ContinueAsNew {
    pub(crate) input: v1::Payload,
}

impl WorkflowContext {
    /// Ends this execution of the function and begins the next one with another input: the same run with an
    /// empty record. What is returned belongs to the caller of the function, so write
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn cart(ctx: WorkflowContext, mut items: Vec<String>) -> anyhow::Result<usize> {
    ///     while let Some(item) = ctx.signals::<String>("item").next().await? {
    ///         items.push(item);
    ///         if ctx.should_continue() {
    ///             return ctx.continue_as_new(&items);
    ///         }
    ///     }
    ///     Ok(items.len())
    /// }
    /// ```
    ///
    /// The run keeps its id, business id, labels and deadline; signals that nobody has taken lie there for
    /// the next execution, and who waits for the run's end goes on waiting. Steps, sleeps and waits of this
    /// execution are forgotten, also those that have not ended: their names are free again, and their
    /// idempotency keys are new. The history before the last two generations is deleted.
    pub fn continue_as_new<T>(&self, input: &(impl Serialize + ?Sized)) -> anyhow::Result<T> {
        let input = payload::encode(input).map_err(|error| {
            let message = format!("the input of the next generation cannot be written: {error}");
            crate::step_error::StepFailure::new(codes::INVALID_OUTPUT, message).non_retryable()
        })?;
        Err(ContinueAsNew { input }.into())
    }

    /// Whether the record has become so long that the run should continue in place: beyond 5,000 results,
    /// ends of sleeps and signals, or when they weigh half of what a history may. A replay answers the same
    /// at the same line.
    pub fn should_continue(&self) -> bool {
        let heard = self.run_state().turns.lock().heard(self.scopes());
        heard.ends >= limits::CONTINUE_AFTER_ENDS || heard.bytes >= limits::CONTINUE_AFTER_BYTES
    }

    /// How often the run has begun from the top with an input of its own, from 1: it rises when the run
    /// continues in place.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn three_times(ctx: WorkflowContext, _: ()) -> anyhow::Result<u32> {
    ///     if ctx.generation() < 3 {
    ///         return ctx.continue_as_new(&());
    ///     }
    ///     Ok(ctx.generation())
    /// }
    /// ```
    pub fn generation(&self) -> u32 {
        self.run_state().generation
    }
}
