//! PublishEvent: somebody tells everybody who waits for it.

use kagzi_engine::Engine;
use kagzi_model::{
    Name, PublishEvent, PublishReply,
    limits::{EVENT_KEEP_MS_MAX, EVENT_KEEP_MS_STANDARD},
};
use kagzi_proto::v1;
use tonic::Status;
use uuid::Uuid;

use crate::{check, services::limits, status, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::PublishEventRequest,
) -> Result<v1::PublishEventResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let key = check::published_topic(namespace, &request.topic, &request.key)?;
    let named = check::optional_name("event_id", &request.event_id)?;
    let id = named.clone().unwrap_or_else(|| Name::from(Uuid::now_v7().to_string()));
    let payload = check::payload(limits(engine), "payload", request.payload)?;
    let keep_ms = check::wait_ms("keep_ms", request.keep_ms)?.unwrap_or(EVENT_KEEP_MS_STANDARD);
    if keep_ms > EVENT_KEEP_MS_MAX {
        let rule = format_args!("it must be at most {EVENT_KEEP_MS_MAX}, which is ninety days");
        return Err(check::invalid("keep_ms", keep_ms, rule));
    }
    let event = PublishEvent { key, id: id.clone(), payload, keep_ms };
    let PublishReply { already, at } = engine.publish(event).await.map_err(|error| match named {
        Some(_) => status::from_engine(error),
        // Sent again it would be another event.
        None => status::from_engine_once(error, "give the event an id of your own"),
    })?;
    let published_at = Some(wire::timestamp(at));
    Ok(v1::PublishEventResponse { already_published: already, event_id: id.to_string(), published_at })
}
