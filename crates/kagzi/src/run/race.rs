//! `ctx.race`, `ctx.timeout` and `ctx.spawn`: what people write when several things may happen.

use std::future::Future;
use std::time::Duration;

use crate::run::context::WorkflowContext;
use crate::run::spawn::{Spawned, spawn};

/// Which of two was first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Raced<A, B> {
    /// The first of the two.
    First(A),
    /// The second of the two.
    Second(B),
}

/// `tokio::select!` that looks at its branches in the order in which they are written. Where branches call
/// steps of the same name when they are first polled (every `async fn` does), a random order would give one
/// branch the other's result in a replay. What loses is dropped: a step in it is not executed again, and a
/// sleep in it wakes nobody.
///
/// ```
/// # use kagzi::WorkflowContext;
/// # use std::time::Duration;
/// async fn approve(ctx: WorkflowContext, order: u64) -> anyhow::Result<&'static str> {
///     kagzi::select! {
///         even = ctx.run("ask", async move { Ok(order % 2 == 0) }) => Ok(if even? { "yes" } else { "no" }),
///         late = ctx.sleep(Duration::from_secs(24 * 3600)) => late.map(|()| "nobody answered"),
///     }
/// }
/// ```
#[macro_export]
macro_rules! select {
    ($($branches:tt)*) => {
        $crate::__private::tokio::select! { biased; $($branches)* }
    };
}

impl WorkflowContext {
    /// Waits for the first of two and drops the other. Which one it was is part of the record.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// # use kagzi::workflow::Raced;
    /// async fn fastest(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    ///     let north = ctx.run("ask north", async { Ok("north".to_owned()) });
    ///     let south = ctx.run("ask south", async { Ok("south".to_owned()) });
    ///     match ctx.race(north, south).await {
    ///         Raced::First(said) | Raced::Second(said) => said,
    ///     }
    /// }
    /// ```
    pub async fn race<A: Future, B: Future>(&self, first: A, second: B) -> Raced<A::Output, B::Output> {
        tokio::select! {
            biased;
            first = first => Raced::First(first),
            second = second => Raced::Second(second),
        }
    }

    /// Waits for a result for so long, over restarts and without holding a worker. `None`: the time is over,
    /// and the future was dropped. Unlike `tokio::time::timeout`, the time does not begin anew with every
    /// replay.
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// # use std::time::Duration;
    /// async fn price(ctx: WorkflowContext, _: ()) -> anyhow::Result<u64> {
    ///     let asked = ctx.run("ask the shop", async { Ok(450) });
    ///     Ok(ctx.timeout(Duration::from_secs(3600), asked).await?.unwrap_or(500))
    /// }
    /// ```
    pub fn timeout<T, F>(
        &self,
        limit: Duration,
        future: F,
    ) -> impl Future<Output = anyhow::Result<Option<T>>> + Send + use<T, F>
    where
        F: Future<Output = anyhow::Result<T>> + Send,
        T: Send,
    {
        let over = self.sleep(limit);
        async move {
            tokio::select! {
                biased;
                ended = future => ended.map(Some),
                over = over => over.map(|()| None),
            }
        }
    }

    /// Executes a part of the workflow beside the rest. Like the function itself it may call steps, which
    /// those in a `tokio::spawn` may not: such a task would go on after the run was parked. Give the part a
    /// [`scope`] of its own if it calls steps. Dropping the handle ends the part, and so does the end of the
    /// function.
    ///
    /// [`scope`]: WorkflowContext::scope
    ///
    /// ```
    /// # use kagzi::WorkflowContext;
    /// async fn order(ctx: WorkflowContext, _: ()) -> anyhow::Result<()> {
    ///     let aside = ctx.scope("mail");
    ///     let mail = ctx.spawn(async move { aside.run("send", async { Ok(()) }).await });
    ///     ctx.run("ship", async { Ok(()) }).await?;
    ///     mail.await
    /// }
    /// ```
    pub fn spawn<T: Send + 'static>(&self, part: impl Future<Output = T> + Send + 'static) -> Spawned<T> {
        let run = self.run_state();
        let (handle, part) = spawn(run, part);
        run.spawned.lock().push(part);
        run.function.call();
        handle
    }
}
