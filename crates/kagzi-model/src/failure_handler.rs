//! Failure handlers: runs that are started, in the same commit, because another run failed.

use crate::{Aggregate, Command, EventKind, Labels, Name, Payload, RunId, RunOptions, StartRun, Timestamp};

/// The workflow type that handles every failure of its namespace, where a worker registers it.
pub const FAILURE_HANDLER: &str = "__kagzi_failure_handler";

/// How the business ids of handlers begin: of those that a run asked for, and of its namespace's.
const OWN: &str = "failure";
const NAMESPACE: &str = "system-failure";

/// The handler that the failed run itself asked for: its start, and the line in the failed run's history.
pub fn own_handler(seen: &Aggregate) -> Option<(Command, EventKind)> {
    let failed = &seen.run;
    let wanted = failed.options.on_failure.as_ref()?;
    let task_queue = wanted.task_queue.clone().unwrap_or_else(|| failed.task_queue.clone());
    start(seen, OWN, &wanted.workflow_type, task_queue)
}

/// The namespace's handler, on the queue whose workers registered it.
pub fn namespace_handler(seen: &Aggregate, task_queue: Name) -> Option<(Command, EventKind)> {
    start(seen, NAMESPACE, &Name::from(FAILURE_HANDLER), task_queue)
}

fn start(
    seen: &Aggregate,
    prefix: &str,
    workflow_type: &Name,
    task_queue: Name,
) -> Option<(Command, EventKind)> {
    let failed = &seen.run;
    let id = handler_id(failed.id, failed.created_at, prefix);
    // By lineage, never by name: a handler's own failure starts nothing. And one handler per failed run.
    if failed.options.handler_of.is_some() || seen.handlers.contains(&id) {
        return None;
    }
    let start = StartRun {
        namespace: failed.namespace.clone(),
        id,
        // Unique per failed run, so a second start finds the first.
        business_id: Some(business_id(prefix, failed.id)),
        workflow_type: workflow_type.clone(),
        task_queue: task_queue.clone(),
        // Composed from the failed run when a worker takes the handler, so nothing is stored twice.
        input: Payload::new(&b""[..]),
        deadline_at: None,
        options: RunOptions {
            handler_of: Some(failed.id),
            // What a failure causes belongs to the same trace.
            trace: failed.options.trace.clone(),
            ..RunOptions::default()
        },
        labels: Labels::default(),
        signals: Vec::new(),
    };
    let event = EventKind::HandlerStarted { handler: id, workflow_type: workflow_type.clone(), task_queue };
    Some((Command::start(start), event))
}

fn business_id(prefix: &str, failed: RunId) -> Name {
    Name::from(format!("{prefix}-{failed}"))
}

/// The business ids that the handlers of a run have, if it has any.
pub fn handler_business_ids(failed: RunId) -> [Name; 2] {
    [OWN, NAMESPACE].map(|prefix| business_id(prefix, failed))
}

/// The ids that the handlers of a run have, if it has any.
pub fn handler_ids(failed: RunId, created_at: Timestamp) -> [RunId; 2] {
    [OWN, NAMESPACE].map(|prefix| handler_id(failed, created_at, prefix))
}

/// Sorts beside the failed run, and is the same whenever its failure is decided again.
fn handler_id(failed: RunId, created_at: Timestamp, prefix: &str) -> RunId {
    RunId::derived(created_at, &[failed.0.as_bytes(), prefix.as_bytes()])
}
