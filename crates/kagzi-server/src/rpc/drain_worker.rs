//! DrainWorker: an operator asks a worker to finish what it has.

use kagzi_engine::Engine;
use kagzi_proto::v1;
use tonic::Status;

use super::get_worker;
use crate::{check, find, status::from_engine};

pub async fn handle(
    engine: &Engine,
    request: v1::DrainWorkerRequest,
) -> Result<v1::DrainWorkerResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let id = find::worker(engine, &namespace, &request.worker_id).await?;
    // Read first: a worker of another namespace must not be drained.
    get_worker::read(engine, &namespace, id).await?;
    engine.drain(id).await.map_err(from_engine)?;
    Ok(v1::DrainWorkerResponse { worker: Some(get_worker::read(engine, &namespace, id).await?) })
}
