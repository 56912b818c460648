//! One execution of one step.

use std::time::SystemTime;

use kagzi_proto::v1;

use crate::absent::{at, text};
use crate::payload::Payload;
use crate::status::published;
use crate::step_error::StepFailure;

/// One execution of one step, as far as the server knows it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StepAttempt {
    /// The run that it belongs to.
    pub run_id: String,
    /// The step's path, e.g. `item-7/charge#2`.
    pub step: String,
    /// How many steps its scope had called before it.
    pub position: u32,
    /// Which execution this is, from 1.
    pub attempt: u32,
    /// Where it stands.
    pub status: StepStatus,
    /// What it returned.
    pub output: Option<Payload>,
    /// How it failed.
    pub error: Option<StepFailure>,
    /// When it began, where that was written down.
    pub started_at: Option<SystemTime>,
    /// When it ended.
    pub finished_at: Option<SystemTime>,
    /// When the next one begins.
    pub retry_at: Option<SystemTime>,
    /// The worker that executed it.
    pub worker_id: Option<String>,
    /// There is no later one.
    pub is_latest: bool,
}

macro_rules! step_status {
    ($($declared:tt)+) => {
        published! {
            /// Where a step stands.
            StepStatus $($declared)+
        }
    };
}
kagzi_catalogue::step_statuses!(step_status);

impl StepAttempt {
    pub(crate) fn from_proto(attempt: v1::StepAttempt) -> StepAttempt {
        let step = attempt.step.unwrap_or_default();
        StepAttempt {
            status: StepStatus::from_wire(attempt.status),
            run_id: attempt.run_id,
            step: step.path,
            position: step.position,
            attempt: attempt.attempt,
            output: attempt.output.map(Payload::from_proto),
            error: attempt.error.map(StepFailure::from_proto),
            started_at: at(attempt.started_at),
            finished_at: at(attempt.finished_at),
            retry_at: at(attempt.retry_at),
            worker_id: text(attempt.worker_id),
            is_latest: attempt.is_latest,
        }
    }
}

/// An empty attempt, for tests of programs that show attempts.
impl Default for StepAttempt {
    fn default() -> StepAttempt {
        StepAttempt::from_proto(v1::StepAttempt::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_survives_the_wire_and_an_unknown_one_says_so() {
        for status in StepStatus::ALL {
            assert_eq!(StepStatus::from_wire(status.to_wire()), status);
            let wire = v1::StepStatus::try_from(status.to_wire()).unwrap();
            assert_eq!(format!("STEP_STATUS_{status}"), wire.as_str_name());
        }
        assert_eq!(StepStatus::from_wire(77), StepStatus::Unknown);
    }
}
