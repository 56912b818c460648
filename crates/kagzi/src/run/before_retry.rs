//! What a worker does before a step is tried again: refresh the page, clear the cache.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use kagzi_catalogue::handling;
use kagzi_proto::v1;

use crate::run::step::StepContext;
use crate::step_error::StepFailure;

/// What a hook of [`WorkerBuilder::before_retry`](crate::worker::WorkerBuilder::before_retry) is told.
#[derive(Debug, Clone)]
pub struct BeforeRetry {
    /// The attempt that is about to begin.
    pub step: StepContext,
    /// How the attempt before it failed.
    pub failure: StepFailure,
}

type Hooked = Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send>>;

/// A hook with its name.
#[derive(Clone)]
pub(crate) struct Hook {
    pub(crate) name: Arc<str>,
    code: Arc<dyn Fn(BeforeRetry) -> Hooked + Send + Sync>,
}

impl Hook {
    pub(crate) fn new<F, Fut>(name: &str, code: F) -> Hook
    where
        F: Fn(BeforeRetry) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        Hook { name: name.into(), code: Arc::new(move |told| Box::pin(code(told))) }
    }
}

/// Which hook a step wants: the one that it names, or the one that is known for its kind and the failure.
#[derive(Debug, Default, Clone)]
pub(crate) struct Wanted {
    pub(crate) kind: Option<String>,
    pub(crate) hook: Option<String>,
}

impl Wanted {
    fn name(&self, failure: &v1::Failure) -> Option<&str> {
        let status = u16::try_from(failure.http_status).ok();
        let known = || handling::before_retry(self.kind.as_deref(), &failure.code, status);
        self.hook.as_deref().or_else(known)
    }

    /// Runs the hook, if one is wanted. Its error is the attempt's.
    pub(crate) async fn perform(
        &self,
        hooks: &[Hook],
        failure: &v1::Failure,
        step: &StepContext,
    ) -> anyhow::Result<()> {
        let Some(name) = self.name(failure) else { return Ok(()) };
        let Some(hook) = hooks.iter().find(|hook| &*hook.name == name) else {
            tracing::warn!(
                hook = name,
                "this worker has no such hook, so the step is tried again without it: give it one with \
                 Worker::builder(..).before_retry(..)"
            );
            return Ok(());
        };
        let failure = StepFailure::from_proto(failure.clone());
        (hook.code)(BeforeRetry { step: step.clone(), failure }).await
    }
}
