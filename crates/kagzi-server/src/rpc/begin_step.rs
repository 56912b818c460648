//! BeginStep: must this step run, and as which attempt?

use kagzi_engine::Engine;
use kagzi_model::{Begin, Kind, LeaseRef, Name, Payload, act};
use kagzi_proto::{idempotency_key, v1};
use kagzi_store::{EventFilter, EventRequest};
use tonic::Status;

use crate::{check, status::from_engine, wire};

pub async fn handle(engine: &Engine, request: v1::BeginStepRequest) -> Result<v1::BeginStepResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let lease = wire::read_lease(&namespace, request.lease.as_ref(), (&request.run_id, request.lease_epoch))?;
    let step = wire::read_step(request.step.as_ref(), &request.step_id, request.position)?;
    let timeout_ms = match (request.start_to_close_timeout_ms, request.start_to_close_timeout_seconds) {
        (Some(ms), _) => {
            let within = u64::try_from(ms).ok().filter(|ms| *ms > 0);
            let rule = "it must be above zero";
            let ms = within.ok_or_else(|| check::invalid("start_to_close_timeout_ms", ms, rule))?;
            Some(check::duration_ms("start_to_close_timeout_ms", ms)?)
        }
        (None, Some(s)) => Some(check::duration_seconds("start_to_close_timeout_seconds", s)?),
        (None, None) => None,
    };
    let policy = check::retry_policy(request.retry_policy)?;
    let standard_ms = i64::try_from(engine.settings().start_to_close.as_millis()).unwrap_or(i64::MAX);
    let begin = act::BeginStep { step: step.clone(), timeout_ms, standard_ms: Some(standard_ms), policy };
    let answer = engine.report(&lease, begin).await.map_err(from_engine)?;
    let mut response = v1::BeginStepResponse {
        idempotency_key: idempotency_key(&lease.run.to_string(), &step.path),
        ..v1::BeginStepResponse::default()
    };
    match answer {
        Begin::Execute { attempt, timeout_ms } => {
            response.should_execute = true;
            response.start_to_close_timeout_ms = timeout_ms.unwrap_or(standard_ms);
            response.attempt = attempt;
            let progress = newest(engine, &lease, &step.path, Kind::StepProgressed).await?;
            response.progress = progress.map(wire::payload);
        }
        Begin::Recorded => {
            // A sleep that is over has no result.
            if let Some(result) = newest(engine, &lease, &step.path, Kind::StepCompleted).await? {
                response.cached_result = result.data;
                response.cached_content_type = result.content_type.to_string();
            }
        }
        Begin::Failed { failure, attempts, finality } => {
            response.failure = Some(wire::failure(&failure));
            response.attempt = attempts;
            response.finality = wire::finality(finality);
        }
        Begin::NotReady { at } => response.retry_in_ms = at.remaining_ms(engine.clock().now()),
    }
    Ok(response)
}

/// The payload of the newest event of this kind about a step. Nothing else is read: a history may be long and
/// its payloads large.
async fn newest(
    engine: &Engine,
    lease: &LeaseRef,
    step: &Name,
    kind: Kind,
) -> Result<Option<Payload>, Status> {
    let filter = EventFilter { kinds: vec![kind as u8], step: Some(step.clone()), ..EventFilter::default() };
    let request = EventRequest { filter, beyond: None, upwards: false, limit: 1, bytes_max: 0 };
    let piece = engine.store().history(&lease.namespace, lease.run, &request).await;
    let piece = piece.map_err(|error| from_engine(error.into()))?;
    Ok(piece.events.into_iter().next().and_then(|event| event.payload))
}
