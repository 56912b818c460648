//! Reading a run's history: filtered, from either end, bounded in rows and in bytes.

use kagzi_model::{Event, Name};

use crate::TimeRange;

/// Which events of a run to read; what is unset or empty matches all. Everything that is set must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Any of these, by the number that databases store.
    pub kinds: Vec<u8>,
    /// Events about this step.
    pub step: Option<Name>,
    pub at: TimeRange,
    /// Behind this sequence number.
    pub after: u64,
}

impl EventFilter {
    /// Whether an event is listed: the rule that the databases' statements are compared with.
    pub fn matches(&self, event: &Event) -> bool {
        let about = |step: &Name| event.kind.step().is_some_and(|(about, _)| about == step);
        (self.kinds.is_empty() || self.kinds.contains(&event.kind.number()))
            && self.step.as_ref().is_none_or(about)
            && self.at.contains(event.at)
            && event.seq > self.after
    }
}

/// A piece of a history, please.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRequest {
    pub filter: EventFilter,
    /// Begin behind this sequence number; none = at the end that `upwards` begins at.
    pub beyond: Option<u64>,
    /// From old to new.
    pub upwards: bool,
    pub limit: usize,
    /// Payloads together are not larger than this, or the piece has one event only: memory has a bound, whatever
    /// the payloads are.
    pub bytes_max: usize,
}

/// Events in the direction they were asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPiece {
    pub events: Vec<Event>,
    /// Others that match follow in this direction.
    pub more: bool,
}

impl EventPiece {
    /// Takes events in reading direction until one is too much. Reads no further than that one.
    pub fn take(request: &EventRequest, events: impl IntoIterator<Item = Event>) -> EventPiece {
        let mut piece = EventPiece { events: Vec::new(), more: false };
        let mut bytes = 0;
        for event in events {
            if !piece.has_room(request, &mut bytes, &event) {
                piece.more = true;
                break;
            }
            piece.events.push(event);
        }
        piece
    }

    /// Whether the event still fits; counts its bytes.
    pub fn has_room(&self, request: &EventRequest, bytes: &mut usize, event: &Event) -> bool {
        *bytes += event.payload.as_ref().map_or(0, |payload| payload.data.len());
        self.events.len() < request.limit && (self.events.is_empty() || *bytes <= request.bytes_max)
    }
}

/// An event without its payload.
#[derive(Debug, Clone, PartialEq)]
pub struct EventOutline {
    /// Its payload is always none.
    pub event: Event,
    /// How many bytes the payload has, if there is one.
    pub payload_bytes: Option<u64>,
}
