//! Approving of what a run waits for.

use crate::client::handle::RunHandle;
use crate::client::signal::Signal;
use crate::run::approval::CHANNEL;

impl RunHandle {
    /// Approves of what the run asks for with [`ctx.approval`](crate::WorkflowContext::approval). The first
    /// approval counts.
    ///
    /// ```no_run
    /// # async fn example(order: kagzi::client::RunHandle) -> Result<(), kagzi::Error> {
    /// order.approve("ship", "ada").await?;
    /// # Ok(()) }
    /// ```
    pub fn approve(&self, subject: &str, by: &str) -> Signal {
        self.signal(format!("{CHANNEL}{subject}"), by).id("approval")
    }
}
