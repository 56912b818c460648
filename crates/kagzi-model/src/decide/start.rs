//! Start: one run per business id.

use std::sync::Arc;

use crate::{Aggregate, Change, EventKind, Payload, Rejection, Run, StartRun, Started, State, Timestamp};

/// Creates the run; the same request again gets the run that is there, another request under the id a conflict.
pub fn decide(
    now: Timestamp,
    taken: Option<&Aggregate>,
    taken_input: Option<&Payload>,
    start: &StartRun,
) -> Result<Change<Started>, Rejection> {
    let Some(taken) = taken else {
        let run = Run {
            namespace: start.namespace.clone(),
            id: start.id,
            business_id: start.business_id.clone(),
            workflow_type: start.workflow_type.clone(),
            task_queue: start.task_queue.clone(),
            state: State::Ready { since: now },
            version: 0,
            epoch: 0,
            attempts: 0,
            dispatch_count: 0,
            crashes: 0,
            created_at: now,
            started_at: None,
            finished_at: None,
            deadline_at: start.deadline_at,
            options: Arc::new(start.options.clone()),
            labels: start.labels.clone(),
        };
        let reply = Started { run: run.id, existed: false };
        let event = (EventKind::RunStarted, Some(start.input.clone()));
        return Ok(Change { run: Some(run), events: vec![event], reply, follow: vec![] });
    };
    let conflict = |what| {
        let run = taken.run.id;
        Err(Rejection::Conflict { business_id: start.business_id.clone(), run, what })
    };
    if taken.run.workflow_type != start.workflow_type {
        return conflict("workflow type");
    }
    if taken.run.task_queue != start.task_queue {
        return conflict("task queue");
    }
    if taken_input.is_some_and(|input| *input != start.input) {
        return conflict("input");
    }
    Ok(Change::nothing(Started { run: taken.run.id, existed: true }))
}
