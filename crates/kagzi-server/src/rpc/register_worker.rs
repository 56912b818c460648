//! RegisterWorker: a worker joins the registry.

use std::time::Duration;

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
    // Whole seconds for workers that know nothing finer: rounded down, but never to none. Below a second that
    // is too seldom, so the exact numbers stand beside them.
    let seconds = |duration: Duration| i32::try_from(duration.as_secs()).unwrap_or(i32::MAX);
    let ms = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    Ok(v1::RegisterWorkerResponse {
        worker_id: worker.id.to_string(),
        heartbeat_interval_secs: seconds(settings.heartbeat_interval).max(1),
        stale_after_secs: seconds(settings.stale_after).max(1),
        heartbeat_interval_ms: ms(settings.heartbeat_interval),
        stale_after_ms: ms(settings.stale_after),
    })
}
