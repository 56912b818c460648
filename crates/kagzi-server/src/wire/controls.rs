//! Namespaces and gates, in and out.

use kagzi_model::{Defaults, Gate, GateKey, Mark, Name, Namespace, NamespaceChange};
use kagzi_proto::v1;
use tonic::Status;

use super::{run, time::timestamp};
use crate::check;

/// A namespace with its limit, which is that of the gate before all its queues.
pub fn namespace(row: Namespace, gate: Option<&Gate>) -> v1::Namespace {
    let mark = row.disabled.as_ref();
    v1::Namespace {
        namespace_id: row.name.to_string(),
        disabled: mark.is_some(),
        disabled_by: by(mark),
        disabled_note: note(mark),
        disabled_at: mark.map(|mark| timestamp(mark.since)),
        retry_policy: run::retry_policy(&row.defaults.retry),
        timeouts: run::timeouts(&row.defaults.timeouts),
        retention_ms: row.retention_ms,
        max_concurrent: gate.and_then(|gate| gate.max_concurrent),
        failure_handler_queue: row.handler_queue.as_deref().unwrap_or_default().to_owned(),
        created_at: Some(timestamp(row.created_at)),
        updated_at: Some(timestamp(row.updated_at)),
        version: row.version,
        description: row.description,
    }
}

pub fn gate(gate: &Gate) -> v1::Gate {
    let mark = gate.paused.as_ref();
    v1::Gate {
        paused: mark.is_some(),
        paused_by: by(mark),
        paused_note: note(mark),
        paused_at: mark.map(|mark| timestamp(mark.since)),
        max_concurrent: gate.max_concurrent,
    }
}

/// The new values of a namespace; its limit is read apart.
pub fn read_values(
    values: v1::NamespaceValues,
    heartbeat_interval_ms: kagzi_model::Millis,
) -> Result<NamespaceChange, Status> {
    let retention = values.retention_ms.map(|ms| check::retention_ms("values.retention_ms", ms));
    let queue = values.failure_handler_queue;
    Ok(NamespaceChange {
        clear: Vec::new(),
        description: values.description.map(check::description).transpose()?,
        defaults: Defaults {
            retry: check::retry_policy(values.retry_policy)?,
            timeouts: check::timeouts(values.timeouts, heartbeat_interval_ms)?,
        },
        retention_ms: retention.transpose()?,
        handler_queue: queue.map(|queue| check::name("values.failure_handler_queue", &queue)).transpose()?,
    })
}

/// The gate that a request names: of a type on a queue, of a queue, or of the namespace.
pub fn read_gate_key(namespace: &Name, task_queue: &str, workflow_type: &str) -> Result<GateKey, Status> {
    let task_queue = check::optional_name("task_queue", task_queue)?;
    let workflow_type = check::optional_name("workflow_type", workflow_type)?;
    match (task_queue, workflow_type) {
        (None, Some(kind)) => Err(check::invalid(
            "workflow_type",
            &*kind,
            "it needs a task_queue beside it: a type is gated per queue",
        )),
        (queue, kind) => {
            Ok(GateKey::from_columns(namespace.clone(), queue.unwrap_or_default(), kind.unwrap_or_default()))
        }
    }
}

/// Who asks; people who do not say are all one.
pub fn read_by(by: &str) -> Result<Name, Status> {
    Ok(check::optional_name("by", by)?.unwrap_or_else(|| Name::from("operator")))
}

fn by(mark: Option<&Mark>) -> String {
    mark.map(|mark| mark.by.to_string()).unwrap_or_default()
}

fn note(mark: Option<&Mark>) -> String {
    mark.map(|mark| mark.note.clone()).unwrap_or_default()
}
