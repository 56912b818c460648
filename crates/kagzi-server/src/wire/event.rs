//! A line of history as clients see it.

use kagzi_model::{Event, EventKind, RecordFrame};
use kagzi_proto::v1;
use prost::{
    Message,
    encoding::{WireType, encode_key, encode_varint},
};

use super::{payload::payload, time::timestamp};

pub fn event(event: Event) -> v1::RunEvent {
    let (step, attempt) =
        event.kind.step().map(|(step, attempt)| (step.to_string(), attempt)).unwrap_or_default();
    v1::RunEvent {
        sequence: event.seq,
        at: Some(timestamp(event.at)),
        kind: event.kind.number().into(),
        step,
        attempt,
        detail_json: event.kind.to_json(),
        payload: event.payload.filter(|_| !is_secret(&event.kind)).map(payload),
        detail: detail(&event.kind),
    }
}

/// Whoever reads a history may not have the right to complete its promises.
fn is_secret(kind: &EventKind) -> bool {
    matches!(kind, EventKind::PromiseMade { .. })
}

/// What an event says. `event.proto` is written from the same declaration as the record that databases store,
/// so the record is the message.
fn detail(kind: &EventKind) -> Option<v1::EventDetail> {
    v1::EventDetail::decode(record(kind).as_slice()).ok().filter(|detail| detail.kind.is_some())
}

fn record(kind: &EventKind) -> Vec<u8> {
    let (mut record, mut bytes) = (Vec::new(), Vec::new());
    kind.encode(&RecordFrame::default(), &mut record);
    encode_key(u32::from(kind.number()), WireType::LengthDelimited, &mut bytes);
    encode_varint(record.len() as u64, &mut bytes);
    bytes.extend(record);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_event_is_told_with_all_that_it_says() {
        for kind in EventKind::samples() {
            let told = detail(&kind).unwrap_or_else(|| panic!("{} has no detail", kind.name()));

            // Not one byte of the record is unknown to the message, or it would be missing here.
            assert_eq!(told.encoded_len(), record(&kind).len(), "{told:?}");
        }
    }
}
