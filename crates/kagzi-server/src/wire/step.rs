//! Step attempts as clients see them.

use kagzi_model::{AttemptState, RunId, StepAttempt, StepRef};
use kagzi_proto::v1::{self, StepStatus};

use tonic::Status;

use super::{failure::failure, time::timestamp};
use crate::check;

/// The step of a unary call: `named`, or path and position by themselves.
pub fn read_step(named: Option<&v1::StepRef>, path: &str, position: u32) -> Result<StepRef, Status> {
    match named {
        Some(named) => check::step(&named.path, named.position),
        None => check::step(path, position),
    }
}

/// An attempt without its output, and the event that has it.
pub fn step_attempt(run: RunId, attempt: StepAttempt) -> (v1::StepAttempt, Option<u64>) {
    let mut recorded = None;
    let mut wire = v1::StepAttempt {
        run_id: run.to_string(),
        step: Some(v1::StepRef { path: attempt.path.to_string(), position: attempt.position }),
        attempt: attempt.attempt,
        started_at: attempt.started_at.map(timestamp),
        finished_at: attempt.finished_at.map(timestamp),
        worker_id: attempt.worker.map(|id| id.to_string()).unwrap_or_default(),
        is_latest: attempt.latest,
        ..v1::StepAttempt::default()
    };
    match attempt.state {
        AttemptState::Running => wire.set_status(StepStatus::Running),
        AttemptState::Completed { recorded_seq } => {
            wire.set_status(StepStatus::Completed);
            recorded = Some(recorded_seq);
        }
        AttemptState::Failed { failure: why, retry_at } => {
            // Waiting for its next attempt only while this one is the latest.
            let waits = retry_at.is_some() && attempt.latest;
            wire.set_status(if waits { StepStatus::Pending } else { StepStatus::Failed });
            wire.error = Some(failure(&why));
            wire.retry_at = retry_at.map(timestamp);
        }
        AttemptState::Sleeping { until } => {
            wire.set_status(StepStatus::Sleeping);
            wire.retry_at = Some(timestamp(until));
        }
        AttemptState::Waiting { until } => {
            wire.set_status(StepStatus::Waiting);
            wire.retry_at = until.map(timestamp);
        }
        AttemptState::Slept => wire.set_status(StepStatus::Completed),
    }
    (wire, recorded)
}
