//! RegisterWorker: a worker joins the registry.

use kagzi_engine::Engine;
use kagzi_proto::v1;
use tonic::Status;

use crate::{status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::RegisterWorkerRequest,
) -> Result<v1::RegisterWorkerResponse, Status> {
    let worker = engine
        .register(Engine::new_worker_id(), wire::read_registration(request)?)
        .await
        .map_err(from_engine)?;
    let settings = engine.settings();
    // Whole seconds, rounded so that a worker beats rather too often and knows rather too early.
    let seconds = |duration: std::time::Duration| i32::try_from(duration.as_secs()).unwrap_or(i32::MAX);
    Ok(v1::RegisterWorkerResponse {
        worker_id: worker.id.to_string(),
        heartbeat_interval_secs: seconds(settings.heartbeat_interval).max(1),
        stale_after_secs: seconds(settings.stale_after).max(1),
    })
}
