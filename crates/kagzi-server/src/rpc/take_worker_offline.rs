//! TakeWorkerOffline: an operator takes a worker's runs away at once.

use kagzi_engine::Engine;
use kagzi_proto::v1;
use tonic::Status;

use super::get_worker;
use crate::{check, find, status::from_engine};

pub async fn handle(
    engine: &Engine,
    request: v1::TakeWorkerOfflineRequest,
) -> Result<v1::TakeWorkerOfflineResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let id = find::worker(engine, &namespace, &request.worker_id).await?;
    // Read first: a worker of another namespace must not be touched.
    get_worker::read(engine, &namespace, id).await?;
    let released = engine.take_offline(id).await.map_err(from_engine)?;
    let worker = Some(get_worker::read(engine, &namespace, id).await?);
    Ok(v1::TakeWorkerOfflineResponse { worker, released })
}
