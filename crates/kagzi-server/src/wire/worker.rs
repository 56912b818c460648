//! Workers, in and out.

use kagzi_model::{Name, Registration, limits::TYPES_PER_WORKER_MAX};
use kagzi_proto::v1;
use kagzi_store::WorkerView;
use tonic::Status;

use super::time::timestamp;
use crate::check::{self, invalid};

pub fn worker(view: WorkerView) -> v1::Worker {
    let WorkerView { worker, active } = view;
    let registration = worker.registration;
    v1::Worker {
        worker_id: worker.id.to_string(),
        namespace_id: registration.namespace.to_string(),
        task_queue: registration.task_queue.to_string(),
        status: worker.status as i32,
        hostname: registration.hostname.to_string(),
        pid: registration.pid,
        version: registration.version.to_string(),
        workflow_types: registration.workflow_types.iter().map(ToString::to_string).collect(),
        max_concurrent: registration.max_concurrent.cast_signed(),
        active_count: active.cast_signed(),
        total_completed: worker.completed_total,
        total_failed: worker.failed_total,
        registered_at: Some(timestamp(worker.registered_at)),
        last_heartbeat_at: Some(timestamp(worker.heartbeat_at)),
        labels: registration.labels.into_iter().collect(),
        deregistered_at: worker.deregistered_at.map(timestamp),
    }
}

pub fn read_registration(request: v1::RegisterWorkerRequest) -> Result<Registration, Status> {
    if request.workflow_types.is_empty() {
        return Err(invalid(
            "workflow_types",
            &request.workflow_types,
            "at least one type must be registered",
        ));
    }
    if request.workflow_types.len() > TYPES_PER_WORKER_MAX {
        let count = request.workflow_types.len();
        return Err(invalid(
            "workflow_types",
            count,
            format_args!("at most {TYPES_PER_WORKER_MAX} are allowed"),
        ));
    }
    let mut workflow_types = request
        .workflow_types
        .iter()
        .map(|name| check::name("workflow_types", name))
        .collect::<Result<Vec<Name>, Status>>()?;
    workflow_types.sort();
    workflow_types.dedup();
    check::labels(&request.labels)?;
    Ok(Registration {
        namespace: check::namespace(&request.namespace_id)?,
        task_queue: check::name("task_queue", &request.task_queue)?,
        workflow_types,
        hostname: check::optional_name("hostname", &request.hostname)?.unwrap_or_default(),
        pid: request.pid,
        version: check::optional_name("version", &request.version)?.unwrap_or_default(),
        max_concurrent: check::max_concurrent(request.max_concurrent)?,
        labels: request.labels.into_iter().collect(),
    })
}
