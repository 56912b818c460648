//! ListPublishedEvents: what is kept, by topic, key and time, in pages that go both ways.

use kagzi_engine::Engine;
use kagzi_model::{Name, Timestamp};
use kagzi_proto::v1;
use kagzi_store::{EventPlace, ListedEvent, Total};
use tonic::Status;

use crate::{check, page_token, response_budget::page_by_name, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::ListPublishedEventsRequest,
) -> Result<v1::ListPublishedEventsResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let limit = check::page_size(request.page_size, 50, 1_000)?;
    let topic = match request.topic.is_empty() {
        true => None,
        false => Some(check::topic(&request.topic, "")?.name),
    };
    let query = format!("published {namespace:?} {topic:?}");
    let (direction, from) = page_token::read_by_place(&request.page_token, &query)?;
    let from = match from {
        Some(place) => Some(read_place(&place).ok_or_else(|| page_token::broken(&request.page_token))?),
        None => None,
    };
    let found = engine.kept_events(&namespace, topic.as_ref(), direction, from.as_ref(), limit).await;
    let found = found.map_err(from_engine)?;
    let total = match request.include_total {
        true => engine.count_kept_events(&namespace, topic.as_ref()).await.map_err(from_engine)?,
        false => Total::of(0),
    };
    let answered = page_by_name(found, direction, &query, |event| (place(&event), shown(event)));
    Ok(v1::ListPublishedEventsResponse {
        events: answered.items,
        next_page_token: answered.next_page_token,
        prev_page_token: answered.prev_page_token,
        total_count: total.count,
        total_capped: total.capped,
        unreadable_count: 0,
    })
}

/// Where an event stands in the list: what is printable last, so that nothing in it can be mistaken.
fn place(event: &ListedEvent) -> Name {
    let topic = &event.key.topic;
    Name::from(format!("{}#{}#{}", event.at.0, topic.name, topic.key))
}

fn read_place(place: &str) -> Option<EventPlace> {
    let (at, topic) = place.split_once('#')?;
    let (topic, key) = topic.split_once('#')?;
    Some(EventPlace { topic: Name::from(topic), key: Name::from(key), at: Timestamp(at.parse().ok()?) })
}

fn shown(event: ListedEvent) -> v1::PublishedEvent {
    v1::PublishedEvent {
        topic: event.key.topic.name.to_string(),
        key: event.key.topic.key.to_string(),
        event_id: event.id.to_string(),
        published_at: Some(wire::timestamp(event.at)),
        expires_at: Some(wire::timestamp(event.expires_at)),
        delivered: event.is_delivered,
        payload_bytes: event.payload_bytes,
    }
}
