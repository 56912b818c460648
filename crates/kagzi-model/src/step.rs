//! The step: one recorded result of a run.

use crate::{Failure, Finality, Name, RetryPolicy, Timestamp, Wait};

/// What is known of one step, without its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Its identity in the run: `charge`, `charge#2`, `item-7/charge`.
    pub path: Name,
    /// How many steps its scope had called before it; a different one on replay means changed code.
    pub position: u32,
    /// Executions that ended, in failure or success.
    pub attempts: u32,
    /// Attempts before somebody let the failed step begin anew: the policy does not count them.
    pub attempts_before_reset: u32,
    /// When it was first heard of.
    pub since: Timestamp,
    /// Its place among all that the function was told of, from 1; 0 as long as it has not ended for good.
    pub order: u32,
    /// How much the function had been told of when the step was first heard of.
    pub after: u32,
    /// The code has dropped it unfinished: it wakes nobody, times out nobody and is not forgiven. Advice, not
    /// truth: whatever is heard of the step later opens it again.
    pub closed: bool,
    pub state: StepState,
}

/// Where a step stands.
#[derive(Debug, Clone, PartialEq)]
pub enum StepState {
    /// Told to have begun.
    Running { since: Timestamp, timeout_at: Option<Timestamp>, policy: RetryPolicy },
    /// Nothing happens before what it waits for.
    Waiting(Wait),
    /// Ended for good; the function is told.
    Done(StepEnd),
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq)]
pub enum StepEnd {
    /// With a result, which is in the history.
    Recorded,
    /// It failed for good.
    Failed { failure: Failure, finality: Finality },
    /// It was a wait for a time, and the time has come.
    Elapsed,
    /// It set a label of the run.
    Labelled,
}

impl StepState {
    /// Not decided yet: it runs or waits.
    pub fn is_open(&self) -> bool {
        match self {
            StepState::Running { .. } | StepState::Waiting(_) => true,
            StepState::Done(_) => false,
        }
    }
}

impl Step {
    /// When the step lets a parked run go on, if it is what the run waits for.
    pub fn due_at(&self) -> Option<Timestamp> {
        if self.closed { None } else { self.waits_until() }
    }

    /// The same for a step that somebody waits for, closed before or not.
    pub fn waits_until(&self) -> Option<Timestamp> {
        match &self.state {
            StepState::Waiting(wait) => wait.due_at(),
            StepState::Running { .. } | StepState::Done(_) => None,
        }
    }

    /// Whether its end is the last of so many things that the function was told of.
    pub fn is_told_last(&self, told: u32) -> bool {
        self.order > 0 && self.order == told
    }

    /// Whether more is to come of it.
    pub fn unfinished(&self) -> bool {
        self.state.is_open()
    }
}
