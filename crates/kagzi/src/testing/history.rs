//! What was recorded of a run, with assertions that print it when they fail.

use std::fmt;

use serde::de::DeserializeOwned;

use crate::client::{Run, RunStatus};
use crate::history::Event;
use crate::{Client, payload};

const STEP_COMPLETED: &str = "step_completed";
const STEP_FAILED: &str = "step_failed";

/// A run and its history. Assertions answer with the history, so that they can be chained.
///
/// ```
/// # use kagzi::{WorkflowContext, client::RunStatus, testing::TestEngine, workflow::StepFailure};
/// # async fn order(ctx: WorkflowContext, _: ()) -> anyhow::Result<()> {
/// #     ctx.run("price", async { Ok(450) }).await?;
/// #     ctx.run("charge", async { Err(StepFailure::new("DECLINED", "no").non_retryable().into()) }).await
/// # }
/// # #[tokio::main]
/// # async fn main() -> anyhow::Result<()> {
/// # let engine = TestEngine::start().await;
/// # engine.work("orders", |worker| { worker.register("order", order); }).await;
/// let run = engine.client().workflow("order", "orders", ()).await?;
/// assert!(run.result::<()>().await.is_err());
///
/// let history = engine.history(run.run_id()).await;
/// history.assert_failed("DECLINED").assert_steps(["price"]).assert_attempts("charge", 1);
/// history.assert_status(RunStatus::Failed);
/// assert_eq!((history.steps(), history.attempts_of("price")), (vec!["price"], 1));
/// assert_eq!(history.result_of::<u64>("price"), 450);
/// assert_eq!(history.events()[0].kind, "run_started");
/// assert_eq!(history.run().workflow_type, "order");
///
/// # async fn price(_: WorkflowContext, _: ()) -> anyhow::Result<u64> { Ok(450) }
/// # engine.work("prices", |worker| { worker.register("price", price); }).await;
/// let run = engine.client().workflow("price", "prices", ()).await?;
/// run.result::<u64>().await?;
/// engine.history(run.run_id()).await.assert_completed();
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct History {
    run: Run,
    events: Vec<Event>,
}

impl History {
    pub(crate) async fn read(client: &Client, run_id: &str) -> History {
        let handle = client.handle(run_id);
        let run = handle.describe().await.unwrap_or_else(|error| panic!("no run {run_id}: {error}"));
        let events = handle.events().await.unwrap_or_else(|error| panic!("no history of {run_id}: {error}"));
        History { run, events }
    }

    /// The run as it was when its history was read.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Every event, oldest first.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The paths of the completed steps, in the order in which they were recorded. Sleeps are not among them.
    pub fn steps(&self) -> Vec<&str> {
        self.of_kind(STEP_COMPLETED).map(|event| event.step.as_deref().unwrap_or_default()).collect()
    }

    /// How often the step was executed, as far as it was recorded.
    pub fn attempts_of(&self, step: &str) -> u32 {
        let ended = self.of_kind(STEP_COMPLETED).chain(self.of_kind(STEP_FAILED));
        ended
            .filter(|event| event.step.as_deref() == Some(step))
            .map(|event| event.attempt)
            .max()
            .unwrap_or(0)
    }

    /// The recorded result of a step.
    #[track_caller]
    pub fn result_of<T: DeserializeOwned>(&self, step: &str) -> T {
        let recorded = self.of_kind(STEP_COMPLETED).find(|event| event.step.as_deref() == Some(step));
        let Some(recorded) = recorded else { panic!("step '{step}' has no result in {self}") };
        payload::decode(recorded.payload.as_ref())
            .unwrap_or_else(|error| panic!("the result of step '{step}' is of another type: {error}"))
    }

    /// The run has completed.
    #[track_caller]
    pub fn assert_completed(&self) -> &History {
        self.assert_status(RunStatus::Completed)
    }

    /// The run has failed with this error code.
    #[track_caller]
    pub fn assert_failed(&self, code: &str) -> &History {
        self.assert_status(RunStatus::Failed);
        let found = self.run.error.as_ref().map_or("", |error| error.code.as_str());
        assert!(found == code, "failed with {found}, not {code}: {self}");
        self
    }

    /// The run is in this state.
    #[track_caller]
    pub fn assert_status(&self, status: RunStatus) -> &History {
        assert!(self.run.status == status, "not {}: {self}", status);
        self
    }

    /// Exactly these steps have completed, in this order.
    #[track_caller]
    pub fn assert_steps<'a>(&self, steps: impl IntoIterator<Item = &'a str>) -> &History {
        let expected: Vec<&str> = steps.into_iter().collect();
        assert!(self.steps() == expected, "completed {:?}, not {expected:?}: {self}", self.steps());
        self
    }

    /// The step was executed this often.
    #[track_caller]
    pub fn assert_attempts(&self, step: &str, attempts: u32) -> &History {
        let found = self.attempts_of(step);
        assert!(found == attempts, "step '{step}' had {found} attempts, not {attempts}: {self}");
        self
    }

    pub(crate) fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Event> {
        self.events.iter().filter(move |event| event.kind == kind)
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = &self.run;
        write!(f, "run {} is {}", run.run_id, run.status)?;
        if let Some(error) = &run.error {
            write!(f, " ({}: {})", error.code, error.message)?;
        }
        for event in &self.events {
            write!(f, "\n{:>4} {}", event.sequence, event.kind)?;
            if let Some(step) = &event.step {
                write!(f, " {step} (attempt {})", event.attempt)?;
            }
        }
        Ok(())
    }
}
