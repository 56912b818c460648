//! Waiting for somebody's approval: `ctx.approval`.

use crate::run::context::WorkflowContext;
use crate::run::signal::SignalWait;

/// What the channels of approvals begin with.
pub(crate) const CHANNEL: &str = "~approval/";

impl WorkflowContext {
    /// Waits until somebody approves of it, with [`RunHandle::approve`](crate::client::RunHandle::approve) or
    /// `kagzi run approve`, and answers with who it was.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn order(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    ///     let by = ctx.approval("ship").await?;
    ///     ctx.run("ship", async move { Ok(format!("shipped, approved by {by}")) }).await
    /// }
    /// ```
    pub fn approval(&self, subject: &str) -> SignalWait<String> {
        self.signal(&format!("{CHANNEL}{subject}"))
    }
}
