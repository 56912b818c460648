//! One event as bytes: its kind's fields and what every event has.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use super::{
    EventKind,
    wire::{Value, Wire, put_bytes, put_number, take_field},
};
use crate::Name;

/// Field numbers that every record keeps for itself.
const AT_OFFSET_US: u32 = 13;
const CONTENT_TYPE: u32 = 14;
const PAYLOAD_BYTES: u32 = 15;

/// A kind that this process pretends not to know; 0 is none.
static HIDDEN: AtomicU8 = AtomicU8::new(0);

/// Makes this process a server of an older version, one that does not know this kind. For tests of servers of
/// two versions on one database: building a second program with another catalogue takes minutes.
#[doc(hidden)]
pub fn pretend_not_to_know(number: u8) {
    HIDDEN.store(number, Relaxed);
}

/// What a record says beside what happened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordFrame {
    /// Microseconds after the time of its row.
    pub at_offset_us: i64,
    /// Of the payload, where it is not the default one.
    pub content_type: Option<Name>,
    /// How many of its row's bytes of payload are its own; none = it has no payload.
    pub payload_bytes: Option<u64>,
}

impl EventKind {
    /// Appends the record.
    pub fn encode(&self, frame: &RecordFrame, out: &mut Vec<u8>) {
        self.put(out);
        if matches!(self, EventKind::Unknown { number: 1.., .. }) {
            // Its bytes have all this already, wherever they came from.
            return;
        }
        frame.at_offset_us.put(AT_OFFSET_US, out);
        if let Some(content_type) = &frame.content_type {
            put_bytes(CONTENT_TYPE, content_type.as_bytes(), out);
        }
        if let Some(bytes) = frame.payload_bytes {
            put_number(PAYLOAD_BYTES, bytes, out);
        }
    }

    /// Reads a record. One that is not understood is kept, with what it says about itself and its payload;
    /// only what is no record at all says nothing.
    pub fn decode(number: u8, record: &[u8]) -> (EventKind, RecordFrame) {
        let mut frame = RecordFrame::default();
        let hidden = HIDDEN.load(Relaxed);
        if number != hidden
            && let Some(kind) = EventKind::known(number, record, |field, value| frame.take(field, value))
        {
            return (kind, frame);
        }
        let (mut frame, mut rest) = (RecordFrame::default(), record);
        while let Some((field, value)) = take_field(&mut rest) {
            frame.take(field, value);
        }
        let known = EventKind::KINDS.iter().find(|kind| kind.number == number && number != hidden);
        let name = match known {
            Some(kind) => Name::from(kind.name),
            None => {
                let line = if number == 0 { EventKind::line_name(record) } else { None };
                line.unwrap_or_else(|| Name::from(format!("kind {number}")))
            }
        };
        (EventKind::Unknown { number, name, record: record.into() }, frame)
    }
}

impl RecordFrame {
    fn take(&mut self, field: u32, value: Value<'_>) {
        match (field, value) {
            (AT_OFFSET_US, Value::Varint(number)) => self.at_offset_us = number.cast_signed(),
            (CONTENT_TYPE, Value::Bytes(bytes)) => {
                self.content_type = std::str::from_utf8(bytes).ok().map(Name::from);
            }
            (PAYLOAD_BYTES, Value::Varint(number)) => self.payload_bytes = Some(number),
            // A field of a later version: it stays in the row, and is passed over here.
            _ => {}
        }
    }
}
