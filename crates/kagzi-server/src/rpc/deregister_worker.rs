//! DeregisterWorker: a worker leaves, at once or after it has drained.

use kagzi_engine::Engine;
use kagzi_proto::v1;
use tonic::Status;

use super::get_worker;
use crate::{check, status::from_engine};

pub async fn handle(
    engine: &Engine,
    request: v1::DeregisterWorkerRequest,
) -> Result<v1::DeregisterWorkerResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let id = check::worker_id(&request.worker_id)?;
    // Read first: a worker of another namespace must not be taken out.
    get_worker::read(engine, &namespace, id).await?;
    if request.drain {
        engine.drain(id).await.map_err(from_engine)?;
        return Ok(v1::DeregisterWorkerResponse { released: 0 });
    }
    let released = engine.deregister(id).await.map_err(from_engine)?;
    Ok(v1::DeregisterWorkerResponse { released: i32::try_from(released).unwrap_or(i32::MAX) })
}
