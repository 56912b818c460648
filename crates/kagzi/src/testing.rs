//! Tests of your workflows: an engine in memory whose clock you move, assertions on what was recorded, and
//! a mode that kills the worker at every point where it matters.
//!
//! ```
//! use std::time::Duration;
//! use kagzi::{WorkflowContext, testing::TestEngine};
//!
//! async fn remind(ctx: WorkflowContext, user: String) -> anyhow::Result<String> {
//!     ctx.sleep(Duration::from_secs(30 * 24 * 3600)).await?;
//!     ctx.run("mail", async move { Ok(format!("mailed {user}")) }).await
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> anyhow::Result<()> {
//! let engine = TestEngine::start().await;
//! engine.work("mails", |worker| { worker.register("remind", remind); }).await;
//! engine.skip_time();
//!
//! let run = engine.client().workflow("remind", "mails", "Ada").await?;
//!
//! assert_eq!(run.result::<String>().await?, "mailed Ada");
//! engine.history(run.run_id()).await.assert_completed().assert_steps(["mail"]);
//! # Ok(())
//! # }
//! ```

mod clock;
mod crash;
mod engine;
mod history;
mod probe;
mod waiting;

#[doc(hidden)]
pub use crash::crash_on_file;
pub use crash::{
    CrashReport, CrashTrial, Crashes, crash_after_every_report, crash_everywhere,
    crash_everywhere_while_signalled, crash_while_signalled,
};
pub use engine::TestEngine;
pub use history::History;
pub(crate) use probe::{Probe, in_words};
