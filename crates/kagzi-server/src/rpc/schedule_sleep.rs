//! ScheduleSleep: the run is left alone for a while; the lease ends.

use kagzi_engine::Engine;
use kagzi_model::{Asleep, act};
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::ScheduleSleepRequest,
) -> Result<v1::ScheduleSleepResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let lease = wire::read_lease(&namespace, request.lease.as_ref(), (&request.run_id, request.lease_epoch))?;
    let path = if request.step_id.is_empty() { "sleep" } else { &request.step_id };
    let step = wire::read_step(request.step.as_ref(), path, request.position)?;
    let seconds = check::duration_seconds("duration_seconds", request.duration_seconds)?;
    let ms = check::duration_ms("duration_ms", request.duration_ms)?;
    // Two that are each within ten years may be more together.
    let together = seconds.saturating_add(ms).cast_unsigned();
    let duration_ms = check::duration_ms("duration_seconds and duration_ms together", together)?;
    let sleep = act::Sleep { step, duration_ms, park: true };
    Ok(match engine.report(&lease, sleep).await.map_err(from_engine)? {
        Asleep::Until(until) => {
            v1::ScheduleSleepResponse { already_over: false, wake_up_at: Some(wire::timestamp(until)) }
        }
        Asleep::Over { .. } => v1::ScheduleSleepResponse { already_over: true, wake_up_at: None },
    })
}
