//! A line of history as clients see it.

use kagzi_model::Event;
use kagzi_proto::v1;

use super::{payload::payload, time::timestamp};

pub fn event(event: Event) -> v1::RunEvent {
    let (step, attempt) =
        event.kind.step().map(|(step, attempt)| (step.to_string(), attempt)).unwrap_or_default();
    v1::RunEvent {
        sequence: event.seq,
        at: Some(timestamp(event.at)),
        kind: event.kind.name().to_owned(),
        step,
        attempt,
        detail_json: event.kind.to_json(),
        payload: event.payload.map(payload),
    }
}
