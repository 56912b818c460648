//! Rows to be written.

use bytes::Bytes;
use kagzi_model::{
    EventKind, Name, RunId, Timestamp,
    event::{RecordFrame, wire::put_delimited},
};

use super::FORMAT;
use crate::EventRow;

/// Events in one row, at the most.
pub const ROW_EVENTS_MAX: usize = 128;
/// Bytes of payloads in one row, and of records. A larger one is alone in its row.
pub const ROW_BYTES_MAX: usize = 64 * 1024;

/// A row to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedRow {
    pub namespace: Name,
    pub run: RunId,
    pub first_seq: u64,
    /// Of the first event.
    pub at: Timestamp,
    pub kinds: Vec<u8>,
    pub detail: Vec<u8>,
    /// None when no event has a payload.
    pub payload: Option<Bytes>,
}

/// The rows of a batch, in the order of their runs. Events of one run come in order.
pub fn pack(events: &[EventRow]) -> Vec<PackedRow> {
    let mut order: Vec<&EventRow> = events.iter().collect();
    // Stable, so that each run's events stay in order.
    order.sort_by_key(|row| row.run);
    let mut rows = Vec::with_capacity(order.len());
    let mut rest = &order[..];
    while let [first, ..] = rest {
        let mut row = Packing::begin(first);
        let count = rest.iter().take_while(|next| row.takes(next)).count();
        rows.push(row.packed());
        rest = &rest[count..];
    }
    rows
}

/// A row in the making.
struct Packing {
    row: PackedRow,
    /// Of several payloads.
    joined: Vec<u8>,
}

impl Packing {
    fn begin(first: &EventRow) -> Self {
        let row = PackedRow {
            namespace: first.namespace.clone(),
            run: first.run,
            first_seq: first.event.seq,
            at: first.event.at,
            kinds: Vec::with_capacity(4),
            detail: Vec::with_capacity(64),
            payload: None,
        };
        Packing { row, joined: Vec::new() }
    }

    fn payload_len(&self) -> usize {
        self.joined.len().max(self.row.payload.as_ref().map_or(0, Bytes::len))
    }

    /// Takes the event into the row, unless it belongs into another one.
    fn takes(&mut self, next: &EventRow) -> bool {
        let EventRow { run, event, .. } = next;
        let PackedRow { first_seq, at, kinds, detail, .. } = &self.row;
        let (at, empty, full) = (*at, kinds.is_empty(), detail.len() > ROW_BYTES_MAX);
        let seq = first_seq + kinds.len() as u64;
        if *run != self.row.run || event.seq != seq || kinds.len() == ROW_EVENTS_MAX {
            return false;
        }
        // A generation begins with a row of its own, so that all before it can go.
        if !empty && matches!(event.kind, EventKind::RunContinued { .. }) {
            return false;
        }
        let add = event.payload.as_ref().map_or(0, |payload| payload.data.len());
        if !empty && (full || self.payload_len() + add > ROW_BYTES_MAX) {
            return false;
        }
        let PackedRow { kinds, detail, payload, .. } = &mut self.row;
        if empty {
            detail.push(FORMAT);
        }
        kinds.push(event.kind.number());
        let content_type = event.payload.as_ref().map(|payload| &payload.content_type);
        let frame = RecordFrame {
            at_offset_us: event.at.0.wrapping_sub(at.0),
            content_type: content_type.filter(|name| !name.is_empty()).cloned(),
            payload_bytes: event.payload.as_ref().map(|payload| payload.data.len() as u64),
        };
        put_delimited(detail, |out| event.kind.encode(&frame, out));
        let Some(own) = &event.payload else { return true };
        match payload {
            // The usual case: one payload, which is written as the bytes it came as.
            None => *payload = Some(own.data.clone()),
            Some(first) => {
                if self.joined.is_empty() {
                    self.joined.extend_from_slice(first);
                }
                self.joined.extend_from_slice(&own.data);
            }
        }
        true
    }

    fn packed(self) -> PackedRow {
        let Packing { mut row, joined } = self;
        if !joined.is_empty() {
            row.payload = Some(Bytes::from(joined));
        }
        row
    }
}
