//! The step: one recorded result of a run.

use crate::{Failure, Finality, Name, RetryPolicy, Timestamp};

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
    pub forgiven: u32,
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
    Running {
        since: Timestamp,
        timeout_at: Option<Timestamp>,
        policy: RetryPolicy,
    },
    /// Failed; the next attempt may begin at `at`.
    Retry {
        at: Timestamp,
        failure: Failure,
    },
    Completed,
    /// Failed for good.
    Failed {
        failure: Failure,
        finality: Finality,
    },
    /// A sleep that is not over.
    Sleeping {
        until: Timestamp,
    },
    /// A sleep that is over.
    Slept,
}

impl StepState {
    /// Not decided yet: it runs, sleeps or waits for a retry.
    pub fn is_open(&self) -> bool {
        match self {
            StepState::Running { .. } | StepState::Retry { .. } | StepState::Sleeping { .. } => true,
            StepState::Completed | StepState::Failed { .. } | StepState::Slept => false,
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
            StepState::Retry { at, .. } => Some(*at),
            StepState::Sleeping { until } => Some(*until),
            StepState::Running { .. }
            | StepState::Completed
            | StepState::Failed { .. }
            | StepState::Slept => None,
        }
    }

    /// Whether more is to come of it.
    pub fn unfinished(&self) -> bool {
        self.state.is_open()
    }
}
