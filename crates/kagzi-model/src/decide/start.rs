//! Start: one run per business id.

use std::sync::Arc;

use crate::{
    Aggregate, Change, EventKind, IdReuse, Name, Payload, Rejection, Run, RunOptions, StartRun, Started,
    State, Status, Timestamp,
};

/// Creates the run; the same request again gets the run that is there, another request under the id a
/// conflict, or by its policy a new run, which takes the id over.
pub fn decide(
    now: Timestamp,
    taken: Option<&Aggregate>,
    taken_input: Option<&Payload>,
    start: &StartRun,
) -> Result<Change<Started>, Rejection> {
    let Some(taken) = taken else { return Ok(create(now, start)) };
    // Without a business id only the same start again meets a run: it has its run id.
    let name = || start.business_id.clone().unwrap_or_else(|| Name::from(start.id.to_string()));
    let repeated = start.options.request.is_some() && taken.run.options.request == start.options.request;
    if !repeated {
        let status = taken.run.state.status();
        let failed = matches!(status, Status::Failed | Status::TimedOut | Status::Cancelled);
        match start.options.reuse {
            IdReuse::Attach => {}
            IdReuse::Reject => {
                let (business_id, run) = (name(), taken.run.id);
                return Err(Rejection::Taken { business_id, run, status });
            }
            IdReuse::AfterFailure if failed => return Ok(create(now, start)),
            IdReuse::AfterEnd if taken.run.state.finished() => return Ok(create(now, start)),
            IdReuse::AfterFailure | IdReuse::AfterEnd => {}
        }
    }
    let conflict = |what| {
        let run = taken.run.id;
        Err(Rejection::Conflict { business_id: name(), run, what })
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

fn create(now: Timestamp, start: &StartRun) -> Change<Started> {
    let run = Run {
        namespace: start.namespace.clone(),
        id: start.id,
        business_id: start.business_id.clone(),
        workflow_type: start.workflow_type.clone(),
        task_queue: start.task_queue.clone(),
        // A run that is to start later is ready from then on: due, and so claimed, not before.
        state: State::Ready { since: start.options.start_at.map_or(now, |at| at.max(now)) },
        version: 0,
        epoch: 0,
        attempts: 0,
        dispatch_count: 0,
        crashes: 0,
        generation: 1,
        first_seq: 1,
        created_at: now,
        started_at: None,
        finished_at: None,
        close_at: None,
        deadline_at: start
            .options
            .timeouts
            .deadline_of(start.options.start_at.map_or(now, |at| at.max(now)), start.deadline_at),
        // What to do about a taken id is of no use afterwards, and is not stored.
        options: Arc::new(RunOptions { reuse: IdReuse::Attach, ..start.options.clone() }),
        labels: start.labels.clone(),
    };
    let reply = Started { run: run.id, existed: false };
    let event = (EventKind::RunStarted, Some(start.input.clone()));
    Change { run: Some(run), events: vec![event], reply, follow: vec![] }
}
