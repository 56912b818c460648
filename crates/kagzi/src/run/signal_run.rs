//! `ctx.signal_run`: a workflow tells another run something, once.

use std::future::Future;

use serde::Serialize;

use crate::error::{Code, Error};
use crate::payload;
use crate::run::context::WorkflowContext;
use crate::step_error::StepFailure;

/// Sent again it would be refused again.
fn is_final(code: Code) -> bool {
    matches!(code, Code::NotFound | Code::FailedPrecondition | Code::InvalidArgument | Code::PermissionDenied)
}

impl WorkflowContext {
    /// Tells a run something on a channel, another one or this one. It is a step: retried like any other, and
    /// its key is the signal's id, so that a crash in the middle never tells it twice. A run that has ended,
    /// a closed channel and a run that is not there are errors that are not retried.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn payment(ctx: WorkflowContext, order: String) -> anyhow::Result<()> {
    ///     let receipt = ctx.run("charge", async { Ok("receipt-7".to_owned()) }).await?;
    ///     ctx.signal_run(&order, "paid", &receipt).await
    /// }
    /// ```
    pub fn signal_run<V: Serialize + ?Sized>(
        &self,
        run_id: &str,
        channel: &str,
        value: &V,
    ) -> impl Future<Output = anyhow::Result<()>> + Send + use<V> {
        let encoded = payload::encode(value);
        let client = self.run_state().uplink.equipment.client();
        let (run_id, channel) = (run_id.to_owned(), channel.to_owned());
        self.step("signal-run").run(move |step| {
            let (client, run_id, channel) = (client.clone(), run_id.clone(), channel.clone());
            let encoded = encoded.as_ref().map(Clone::clone).map_err(ToString::to_string);
            async move {
                let not_json = |why| StepFailure::new("INVALID_SIGNAL", why).non_retryable();
                let client = client.ok_or_else(|| {
                    StepFailure::new("NO_CLIENT", "this worker has no way to signal runs").non_retryable()
                })?;
                let signal = client.handle(run_id).signal_payload(channel, encoded.map_err(not_json)?);
                match signal.id(step.idempotency_key()).await {
                    Ok(_) => Ok(()),
                    Err(Error::Refused(refusal)) if is_final(refusal.code) => {
                        let (code, message) = (refusal.reason.clone(), refusal.message.clone());
                        Err(StepFailure::new(code, message).non_retryable().into())
                    }
                    Err(other) => Err(other.into()),
                }
            }
        })
    }
}
