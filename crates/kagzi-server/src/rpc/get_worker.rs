//! GetWorker: one worker.

use kagzi_engine::Engine;
use kagzi_model::{Name, WorkerId};
use kagzi_proto::{Reason, v1};
use tonic::Status;

use crate::{check, find, status::from_engine, wire};

pub async fn handle(engine: &Engine, request: v1::GetWorkerRequest) -> Result<v1::GetWorkerResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let id = find::worker(engine, &namespace, &request.worker_id).await?;
    Ok(v1::GetWorkerResponse { worker: Some(read(engine, &namespace, id).await?) })
}

/// The worker, or NOT_FOUND.
pub async fn read(engine: &Engine, namespace: &Name, id: WorkerId) -> Result<v1::Worker, Status> {
    let found = engine.store().worker_by_id(namespace, id).await;
    let found = found.map_err(|error| from_engine(error.into()))?;
    let missing = || {
        Reason::WorkerNotFound.status(format!(
            "there is no worker {id} in namespace '{namespace}'; list them with: \
             kagzi --namespace {namespace} worker list"
        ))
    };
    Ok(wire::worker(found.ok_or_else(missing)?))
}
