//! Reading a run's history: filtered, from either end, bounded in rows and in bytes.

use std::ops::{ControlFlow, Range};

use bytes::Bytes;
use kagzi_model::{Event, Name};

use crate::{
    StoreError, TimeRange,
    rows::{Line, PayloadPlace, StoredRow},
};

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
    /// Whether an event is listed.
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
    /// Payloads together are not larger than this, or the piece has one event only: memory has a bound,
    /// whatever the payloads are.
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
            let own = event.payload.as_ref().map_or(0, |payload| payload.data.len());
            if !piece.has_room(request, &mut bytes, own) {
                piece.more = true;
                break;
            }
            piece.events.push(event);
        }
        piece
    }

    /// Whether an event with a payload of so many bytes still fits; counts them.
    fn has_room(&self, request: &EventRequest, bytes: &mut usize, own: usize) -> bool {
        *bytes = bytes.saturating_add(own);
        self.events.len() < request.limit && (self.events.is_empty() || *bytes <= request.bytes_max)
    }
}

/// A piece that is being read row by row. What is wanted of a row is known before its payloads are: they are
/// read only where an event that has one is wanted.
#[derive(Debug)]
pub struct Reading<'r> {
    request: &'r EventRequest,
    piece: EventPiece,
    bytes: usize,
    /// Which events still lack their payload: the place in the piece, the first number of its row, where it
    /// is in there.
    lacking: Vec<(usize, u64, PayloadPlace)>,
}

impl<'r> Reading<'r> {
    pub fn new(request: &'r EventRequest) -> Self {
        let piece = EventPiece { events: Vec::new(), more: false };
        Reading { request, piece, bytes: 0, lacking: Vec::new() }
    }

    /// The first number that is read, and the one behind the last.
    pub fn range(request: &EventRequest) -> Range<u64> {
        let after = if request.upwards { request.beyond.unwrap_or(0) } else { 0 };
        let before = if request.upwards { None } else { request.beyond };
        let from = after.max(request.filter.after).saturating_add(1);
        from..before.unwrap_or(u64::MAX)
    }

    /// Takes what is wanted of the next row in reading direction. Breaks when the piece is full.
    pub fn row(&mut self, row: &StoredRow<'_>) -> Result<ControlFlow<()>, StoreError> {
        if self.request.upwards {
            return self.lines(row.first_seq, row.lines());
        }
        let lines: Vec<_> = row.lines().collect();
        self.lines(row.first_seq, lines.into_iter().rev())
    }

    fn lines(
        &mut self,
        first_seq: u64,
        lines: impl Iterator<Item = Result<Line, StoreError>>,
    ) -> Result<ControlFlow<()>, StoreError> {
        let range = Reading::range(self.request);
        for line in lines {
            let Line { event, payload } = line?;
            if !range.contains(&event.seq) || !self.request.filter.matches(&event) {
                continue;
            }
            let own = payload.as_ref().map_or(0, |place| place.bytes.len());
            if !self.piece.has_room(self.request, &mut self.bytes, own) {
                self.piece.more = true;
                return Ok(ControlFlow::Break(()));
            }
            if let Some(place) = payload {
                self.lacking.push((self.piece.events.len(), first_seq, place));
            }
            self.piece.events.push(event);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Some event was taken whose payload is still to be given.
    pub fn lacks(&self) -> bool {
        !self.lacking.is_empty()
    }

    /// The first numbers of the rows whose payloads are lacking.
    pub fn lacking(&self) -> Vec<u64> {
        let mut rows: Vec<u64> = self.lacking.iter().map(|(_, first_seq, _)| *first_seq).collect();
        rows.dedup();
        rows
    }

    /// Gives the events of a row their payloads.
    pub fn payloads(&mut self, first_seq: u64, payloads: &Bytes) -> Result<(), StoreError> {
        for (at, _, place) in self.lacking.extract_if(.., |(_, row, _)| *row == first_seq) {
            self.piece.events[at].payload = Some(place.cut(payloads)?);
        }
        Ok(())
    }

    /// There are more rows behind the last one that was given.
    pub fn rows_follow(&mut self) {
        self.piece.more = true;
    }

    pub fn done(self) -> EventPiece {
        self.piece
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
