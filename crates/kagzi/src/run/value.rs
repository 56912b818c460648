//! Values that differ between two executions, recorded once: the time, an id, a random number.

use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::SystemTime;

use uuid::Uuid;

use crate::run::context::WorkflowContext;

impl WorkflowContext {
    /// The time, recorded as a step: a replay is told the same. It is the worker's clock.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn lottery(ctx: WorkflowContext, people: u64) -> anyhow::Result<String> {
    ///     let (drawn_at, ticket) = (ctx.now().await?, ctx.uuid().await?);
    ///     let winner = ctx.random().await? % people;
    ///     Ok(format!("number {winner} has won, ticket {ticket}, drawn {drawn_at:?}"))
    /// }
    /// ```
    pub fn now(&self) -> impl Future<Output = anyhow::Result<SystemTime>> + Send + use<> {
        self.run("now", async { Ok(SystemTime::now()) })
    }

    /// A new id, recorded as a step: a replay is told the same.
    pub fn uuid(&self) -> impl Future<Output = anyhow::Result<Uuid>> + Send + use<> {
        let recorded = self.run("uuid", async { Ok(Uuid::now_v7().to_string()) });
        async move { Ok(Uuid::parse_str(&recorded.await?)?) }
    }

    /// A random number, recorded as a step: a replay is told the same. Good for jitter and samples, not for
    /// keys.
    pub fn random(&self) -> impl Future<Output = anyhow::Result<u64>> + Send + use<> {
        self.run("random", async { Ok(RandomState::new().build_hasher().finish()) })
    }
}
