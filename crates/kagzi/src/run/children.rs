//! Many runs at once that a run starts and waits for together: `ctx.children`.

use std::future::IntoFuture;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::{BoxFuture, join_all, try_join_all};
use kagzi_proto::v1;
use serde::de::DeserializeOwned;

use crate::retry_policy::RetryPolicy;
use crate::run::child::{ChildBuilder, ClosePolicy};
use crate::run::slot::Gathering;

/// Many children of one type that are waited for together. Made by [`WorkflowContext::children`].
///
/// ```
/// # use kagzi::WorkflowContext;
/// # use kagzi::workflow::ClosePolicy;
/// async fn totals(ctx: WorkflowContext, shops: Vec<String>) -> anyhow::Result<u64> {
///     let totals = ctx.children("total", shops).queue("reports").on_close(ClosePolicy::Abandon);
///     let totals: Vec<anyhow::Result<u64>> = totals.await;
///     Ok(totals.into_iter().flatten().sum())
/// }
/// ```
#[must_use = "children are started by .await"]
pub struct ChildrenBuilder<T> {
    children: Vec<ChildBuilder<T>>,
}

impl<T: DeserializeOwned + Send + 'static> ChildrenBuilder<T> {
    pub(crate) fn new(children: Vec<ChildBuilder<T>>) -> Self {
        ChildrenBuilder { children }
    }

    /// The queue whose workers execute them; this run's own unless told otherwise.
    pub fn queue(self, queue: &str) -> Self {
        self.each(|child| child.queue(queue))
    }

    /// How the steps of each are retried.
    pub fn retry_policy(self, policy: &RetryPolicy) -> Self {
        self.each(|child| child.retry_policy(policy.clone()))
    }

    /// What becomes of them when this run ends first.
    pub fn on_close(self, policy: ClosePolicy) -> Self {
        self.each(|child| child.on_close(policy))
    }

    /// Fails with the first that fails. The others go on until this run ends, which closes them.
    ///
    /// ```
    /// # use kagzi::{RetryPolicy, WorkflowContext};
    /// async fn totals(ctx: WorkflowContext, shops: Vec<String>) -> anyhow::Result<u64> {
    ///     let policy = RetryPolicy::default().maximum_attempts(3);
    ///     let totals: Vec<u64> = ctx.children("total", shops).retry_policy(&policy).fail_fast().await?;
    ///     Ok(totals.into_iter().sum())
    /// }
    /// ```
    pub fn fail_fast(self) -> BoxFuture<'static, anyhow::Result<Vec<T>>> {
        let children = self.gathered(v1::Wake::LastOrFailed);
        Box::pin(async move { try_join_all(children.into_iter().map(IntoFuture::into_future)).await })
    }

    fn each(self, change: impl Fn(ChildBuilder<T>) -> ChildBuilder<T>) -> Self {
        ChildrenBuilder { children: self.children.into_iter().map(change).collect() }
    }

    fn gathered(self, wake: v1::Wake) -> Vec<ChildBuilder<T>> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let gathering = Gathering { number: NUMBER.fetch_add(1, Ordering::Relaxed), wake };
        self.each(|child| child.gathered(gathering)).children
    }
}

impl<T: DeserializeOwned + Send + 'static> IntoFuture for ChildrenBuilder<T> {
    /// One for each, in the order of the inputs.
    type Output = Vec<anyhow::Result<T>>;
    type IntoFuture = BoxFuture<'static, Vec<anyhow::Result<T>>>;

    fn into_future(self) -> Self::IntoFuture {
        let children = self.gathered(v1::Wake::Last);
        Box::pin(async move { join_all(children.into_iter().map(IntoFuture::into_future)).await })
    }
}
