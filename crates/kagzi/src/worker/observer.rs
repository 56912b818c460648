//! Observers: told what a worker really does, and never of a replay.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kagzi_proto::v1;

use crate::run::context::WorkflowContext;
use crate::run::step::StepContext;
use crate::step_error::StepFailure;

/// Is told when a run begins, when it ends, and of every attempt of a step in between: to count and to
/// measure them. A function is executed again from the top whenever its run goes on, and nobody is told of
/// that. Unlike a [`Middleware`](crate::workflow::Middleware), an observer changes nothing; a panic in it is
/// logged. See [`WorkerBuilder::observer`](crate::worker::WorkerBuilder::observer).
///
/// ```
/// use kagzi::workflow::{Observer, RunOutcome, StepFailure};
/// use kagzi::{StepContext, WorkflowContext};
///
/// struct Log;
///
/// impl Observer for Log {
///     fn run_began(&self, run: &WorkflowContext) {
///         println!("{} began", run.run_id());
///     }
///
///     fn run_ended(&self, run: &WorkflowContext, outcome: RunOutcome) {
///         println!("{} ended: {outcome:?}", run.run_id());
///     }
///
///     fn step_began(&self, step: &StepContext) {
///         println!("attempt {} of {}", step.attempt(), step.path());
///     }
///
///     fn step_ended(&self, step: &StepContext, failure: Option<&StepFailure>) {
///         println!("{} ended: {failure:?}", step.path());
///     }
/// }
///
/// let worker = kagzi::Worker::builder("127.0.0.1:50051", "orders").observer(Log);
/// # drop(worker);
/// ```
pub trait Observer: Send + Sync + 'static {
    /// A worker was given the run for the first time. At most once per run: should that worker die at this
    /// moment, nobody is told again.
    fn run_began(&self, run: &WorkflowContext) {
        let _ = run;
    }

    /// An execution of the function has ended, and the server has committed how. One that is parked, given
    /// back or paused has not ended.
    fn run_ended(&self, run: &WorkflowContext, outcome: RunOutcome) {
        let _ = (run, outcome);
    }

    /// The code of a step is about to be executed.
    fn step_began(&self, step: &StepContext) {
        let _ = step;
    }

    /// The code of a step has ended. What it returned may not be durable yet: should the worker die at this
    /// moment, there is another attempt. An attempt that is dropped does not end. A
    /// [`poll`](WorkflowContext::poll) that found nothing fails with the code `NOT_YET`.
    fn step_ended(&self, step: &StepContext, failure: Option<&StepFailure>) {
        let _ = (step, failure);
    }
}

/// How an execution of a workflow function ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunOutcome {
    /// It returned a value, and so the run has ended.
    Completed,
    /// It returned an error or panicked. Unless the run may be retried, it has ended.
    Failed,
    /// It ended its generation: the run continues in place.
    Continued,
}

/// The observers of one worker.
#[derive(Default, Clone)]
pub(crate) struct Observers(Vec<Arc<dyn Observer>>);

impl Observers {
    pub(crate) fn add(&mut self, observer: impl Observer) {
        self.0.push(Arc::new(observer));
    }

    pub(crate) fn run_began(&self, run: &WorkflowContext) {
        self.tell(|observer| observer.run_began(run));
    }

    pub(crate) fn run_ended(&self, run: &WorkflowContext, outcome: RunOutcome) {
        self.tell(|observer| observer.run_ended(run, outcome));
    }

    pub(crate) fn step_began(&self, step: &StepContext) {
        self.tell(|observer| observer.step_began(step));
    }

    pub(crate) fn step_ended(&self, step: &StepContext, failure: Option<&v1::Failure>) {
        if self.0.is_empty() {
            return;
        }
        let failure = failure.cloned().map(StepFailure::from_proto);
        self.tell(|observer| observer.step_ended(step, failure.as_ref()));
    }

    /// Somebody else's code: a panic in it is its own affair.
    fn tell(&self, tell: impl Fn(&dyn Observer)) {
        for observer in &self.0 {
            if catch_unwind(AssertUnwindSafe(|| tell(&**observer))).is_err() {
                tracing::error!("an observer panicked");
            }
        }
    }
}
