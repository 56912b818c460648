//! What a worker gives to everything that it executes: shared state, the codes of typed errors, and
//! middleware.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::client::Client;
use crate::run::before_retry::Hook;
use crate::run::context::WorkflowContext;
use crate::run::step::StepContext;
use crate::step_error::StepFailure;
use crate::worker::observer::Observers;
use crate::{codes, failure};

/// An error type that says more than its text. Steps and workflows return it with `?` like any other error; a
/// worker that knows the type ([`WorkerBuilder::failure`](crate::worker::WorkerBuilder::failure)) finds it in
/// the chain and reports what it says.
///
/// ```
/// use kagzi::workflow::Failure;
///
/// #[derive(Debug)]
/// enum Payment { Declined, Busy }
///
/// impl std::fmt::Display for Payment {
///     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
///         f.write_str(match self { Payment::Declined => "no money", Payment::Busy => "try later" })
///     }
/// }
/// impl std::error::Error for Payment {}
///
/// impl Failure for Payment {
///     fn code(&self) -> String {
///         match self { Payment::Declined => "CARD_DECLINED".into(), Payment::Busy => "BUSY".into() }
///     }
///     fn non_retryable(&self) -> bool {
///         matches!(self, Payment::Declined)
///     }
/// }
///
/// let worker = kagzi::Worker::builder("127.0.0.1:50051", "orders").failure::<Payment>();
/// # drop(worker);
/// ```
pub trait Failure: std::error::Error + Send + Sync + 'static {
    /// For programs, e.g. `CARD_DECLINED`: what retry policies and callers compare.
    fn code(&self) -> String;

    /// Yours to define, e.g. `transient` or `permanent`.
    fn class(&self) -> String {
        String::new()
    }

    /// True: no further attempt, whatever the policy says.
    fn non_retryable(&self) -> bool {
        false
    }

    /// Instead of the policy's delay.
    fn retry_after(&self) -> Option<Duration> {
        None
    }

    /// Anything worth keeping next to the failure, up to 4 KiB of JSON.
    fn details(&self) -> Option<serde_json::Value> {
        None
    }
}

/// The rest of what a middleware stands before. It is run by awaiting it.
pub type Next<'a> = Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send + 'a>>;

/// Stands around every execution of a workflow function, and around every attempt of a step: to measure them,
/// to give them task-locals, to change their errors, or to refuse them. See
/// [`WorkerBuilder::middleware`](crate::worker::WorkerBuilder::middleware).
///
/// ```
/// use kagzi::workflow::{Middleware, Next};
/// use kagzi::StepContext;
///
/// struct Times;
///
/// impl Middleware for Times {
///     fn step<'a>(&'a self, step: &'a StepContext, next: Next<'a>) -> Next<'a> {
///         Box::pin(async move {
///             let began = std::time::Instant::now();
///             let ended = next.await;
///             println!("{} took {:?}", step.path(), began.elapsed());
///             ended
///         })
///     }
/// }
/// ```
pub trait Middleware: Send + Sync + 'static {
    /// Around one execution of a workflow function. It is executed again whenever the run continues, so what
    /// is done here must be as repeatable as the function itself.
    fn run<'a>(&'a self, run: &'a WorkflowContext, next: Next<'a>) -> Next<'a> {
        let _ = run;
        next
    }

    /// Around one attempt of a step, within its timeout. An error instead of the step's result fails the
    /// attempt.
    fn step<'a>(&'a self, step: &'a StepContext, next: Next<'a>) -> Next<'a> {
        let _ = step;
        next
    }
}

type ReadFailure = fn(&anyhow::Error) -> Option<StepFailure>;

/// All that the builder was given.
#[derive(Default, Clone)]
pub(crate) struct Equipment {
    states: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    failures: Vec<ReadFailure>,
    middleware: Vec<Arc<dyn Middleware>>,
    pub(crate) observers: Observers,
    before_retry: Vec<Hook>,
    /// For what workflows ask of the server beside their own reports.
    client: Option<Client>,
}

impl Equipment {
    pub(crate) fn set_client(&mut self, client: Client) {
        self.client = Some(client);
    }

    pub(crate) fn client(&self) -> Option<Client> {
        self.client.clone()
    }

    pub(crate) fn add_state<T: Send + Sync + 'static>(&mut self, state: T) {
        self.states.insert(TypeId::of::<T>(), Arc::new(state));
    }

    pub(crate) fn add_failure<E: Failure>(&mut self) {
        self.failures.push(|error| failure::find::<E>(error).map(spoken));
    }

    pub(crate) fn add_middleware(&mut self, middleware: impl Middleware) {
        self.middleware.push(Arc::new(middleware));
    }

    /// Given again under the same name, the last counts.
    pub(crate) fn add_before_retry(&mut self, hook: Hook) {
        self.before_retry.retain(|other| other.name != hook.name);
        self.before_retry.push(hook);
    }

    pub(crate) fn before_retry(&self) -> &[Hook] {
        &self.before_retry
    }

    pub(crate) fn state<T: Send + Sync + 'static>(&self) -> Arc<T> {
        let found = self.states.get(&TypeId::of::<T>()).cloned().and_then(|state| state.downcast().ok());
        found.unwrap_or_else(|| {
            let name = type_name::<T>();
            panic!("the worker has no state of type {name}: give it one with Worker::builder(..).state(..)")
        })
    }

    /// What the first known type in the chain says.
    pub(crate) fn typed(&self, error: &anyhow::Error) -> Option<StepFailure> {
        self.failures.iter().find_map(|read| read(error))
    }

    pub(crate) fn has_middleware(&self) -> bool {
        !self.middleware.is_empty()
    }

    pub(crate) async fn around_run<T: Send>(
        &self,
        run: &WorkflowContext,
        code: impl Future<Output = anyhow::Result<T>> + Send,
    ) -> anyhow::Result<T> {
        let mut value = None;
        let mut next: Next<'_> = Box::pin(async {
            value = Some(code.await?);
            Ok(())
        });
        // The first that was given stands outermost.
        for middleware in self.middleware.iter().rev() {
            next = middleware.run(run, next);
        }
        next.await?;
        value.ok_or_else(skipped)
    }

    pub(crate) async fn around_step<T: Send>(
        &self,
        step: &StepContext,
        code: impl Future<Output = anyhow::Result<T>> + Send,
    ) -> anyhow::Result<T> {
        let mut value = None;
        let mut next: Next<'_> = Box::pin(async {
            value = Some(code.await?);
            Ok(())
        });
        // The first that was given stands outermost.
        for middleware in self.middleware.iter().rev() {
            next = middleware.step(step, next);
        }
        next.await?;
        value.ok_or_else(skipped)
    }
}

fn skipped() -> anyhow::Error {
    let message = "a middleware returned Ok without awaiting what it stands before, so there is no result";
    StepFailure::new(codes::ERROR, message).non_retryable().into()
}

/// The failure that a typed error is.
fn spoken<E: Failure>(error: &E) -> StepFailure {
    StepFailure {
        code: error.code(),
        message: error.to_string(),
        class: error.class(),
        non_retryable: error.non_retryable(),
        retry_after: error.retry_after(),
        details: error.details(),
        http_status: None,
    }
}
