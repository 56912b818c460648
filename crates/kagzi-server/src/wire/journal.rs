//! The journal as replay reads it: waiting times as durations, because workers' clocks are their own.

use kagzi_model::{JournalEntry, JournalState, Timestamp};
use kagzi_proto::v1::{self, StepStatus};

use super::{failure::failure, payload::payload, words};

pub fn journal_entry(entry: &JournalEntry, now: Timestamp) -> v1::JournalEntry {
    let step = v1::StepRef { path: entry.path.to_string(), position: entry.position };
    let mut wire = v1::JournalEntry {
        step: Some(step),
        attempts: entry.attempts,
        order: entry.order,
        silent: entry.silent,
        child_run_id: entry.child.map(|child| child.to_string()).unwrap_or_default(),
        ..v1::JournalEntry::default()
    };
    wire.progress = entry.progress.clone().map(payload);
    wire.signal_id = entry.signal.as_ref().map_or_else(String::new, ToString::to_string);
    match &entry.state {
        JournalState::Begun => wire.set_status(StepStatus::Running),
        JournalState::Completed { result } => {
            wire.set_status(StepStatus::Completed);
            wire.result = Some(payload(result.clone()));
        }
        JournalState::Failed { failure: why, finality } => {
            wire.set_status(StepStatus::Failed);
            wire.finality = words::finality(*finality);
            wire.failure = Some(Box::new(failure(why)));
        }
        JournalState::Retry { at, failure: why } => {
            wire.set_status(StepStatus::Pending);
            wire.failure = Some(Box::new(failure(why)));
            wire.remaining_ms = at.remaining_ms(now);
        }
        JournalState::Sleeping { until } => {
            wire.set_status(StepStatus::Sleeping);
            wire.remaining_ms = until.remaining_ms(now);
        }
        JournalState::Waiting { until, is_there, .. } => {
            wire.set_status(StepStatus::Waiting);
            wire.remaining_ms = until.map_or(-1, |until| until.remaining_ms(now));
            wire.signalled = *is_there;
        }
        JournalState::Slept => wire.set_status(StepStatus::Sleeping),
    }
    wire
}
