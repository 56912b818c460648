//! Events as rows of a table: one row per run and commit, the same bytes on every database.
//!
//! A row has the sequence number and the time of its first event, a byte per event for its kind, a record per
//! event, and all payloads one after the other. Kinds and records are apart from payloads, so that deciding
//! and outlines never touch what is large. Rows appear whole and are never changed: two writers with the same
//! view write the same first number, and the unique key lets one through.

mod pack;

pub use pack::{PackedRow, ROW_BYTES_MAX, ROW_EVENTS_MAX, pack};

use std::ops::{ControlFlow, Range};

use bytes::Bytes;
use kagzi_model::{Aggregate, Event, EventKind, Name, Payload, Timestamp, event::wire::take_delimited};

use crate::{EventOutline, StoreError};

/// The first byte of `detail`: records of protobuf's wire format, each after its length.
const FORMAT: u8 = 1;

/// A row as it was read, without its payloads.
#[derive(Debug, Clone, Copy)]
pub struct StoredRow<'a> {
    pub first_seq: u64,
    pub at: Timestamp,
    pub kinds: &'a [u8],
    pub detail: &'a [u8],
}

/// An event of a row, and where its payload is among the row's.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its payload is none.
    pub event: Event,
    pub payload: Option<PayloadPlace>,
}

/// Where a payload is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadPlace {
    pub bytes: Range<usize>,
    pub content_type: Name,
}

impl PayloadPlace {
    /// Cuts the payload out of its row's, without copying it.
    pub fn cut(self, payloads: &Bytes) -> Result<Payload, StoreError> {
        if self.bytes.end > payloads.len() {
            return Err(StoreError::Corrupt(format!(
                "could not read column payload: {} bytes, and a record says {}",
                payloads.len(),
                self.bytes.end
            )));
        }
        Ok(Payload { data: payloads.slice(self.bytes), content_type: self.content_type })
    }
}

impl<'a> StoredRow<'a> {
    /// Its events, in order.
    pub fn lines(&self) -> Lines<'a> {
        let (whole, detail) = match self.detail.split_first() {
            Some((&FORMAT, records)) => (true, records),
            Some(_) | None => (false, self.detail),
        };
        let StoredRow { first_seq: seq, at, kinds, .. } = *self;
        Lines { seq, at, kinds, detail, payload_at: 0, whole: whole && !kinds.is_empty() }
    }

    /// The payload of the first event: a run's input, in its first row.
    pub fn first_payload(&self, payloads: &Bytes) -> Result<Option<Payload>, StoreError> {
        let first = self.lines().next().transpose()?;
        first.and_then(|line| line.payload).map(|place| place.cut(payloads)).transpose()
    }

    /// The payload of the last event of a kind.
    pub fn last_payload(&self, kind: u8, payloads: &Bytes) -> Result<Option<Payload>, StoreError> {
        let mut last = None;
        for line in self.lines() {
            let line = line?;
            if line.event.kind.number() == kind {
                last = line.payload;
            }
        }
        last.map(|place| place.cut(payloads)).transpose()
    }
}

/// Adds the events of a row that are wanted, without payloads. Breaks when there are enough.
pub fn outline(
    row: &StoredRow<'_>,
    after_seq: u64,
    limit: usize,
    lines: &mut Vec<EventOutline>,
) -> Result<ControlFlow<()>, StoreError> {
    for line in row.lines() {
        let Line { event, payload } = line?;
        if lines.len() == limit {
            return Ok(ControlFlow::Break(()));
        }
        if event.seq > after_seq {
            let payload_bytes = payload.map(|place| place.bytes.len() as u64);
            lines.push(EventOutline { event, payload_bytes });
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Adds the payloads of the wanted events that this row holds, and says how many of the first wanted ones it
/// holds.
pub fn payloads(
    row: &StoredRow<'_>,
    payloads: &Bytes,
    wanted: &[u64],
    found: &mut Vec<(u64, Payload)>,
) -> Result<usize, StoreError> {
    let range = row.first_seq..row.first_seq + row.kinds.len() as u64;
    let here = wanted.iter().take_while(|seq| range.contains(seq)).count();
    let wanted = &wanted[..here];
    for line in row.lines() {
        let Line { event, payload } = line?;
        if let Some(place) = payload.filter(|_| wanted.contains(&event.seq)) {
            found.push((event.seq, place.cut(payloads)?));
        }
    }
    Ok(here)
}

/// Takes a row into a run that is being loaded, and says that it ends with another row or has a second result
/// of a step. Histories are linear by the database's unique key, and one result per step is `decide`'s
/// promise on a linear history: this is where a broken promise is noticed before anything is built on it.
pub fn absorb(aggregate: &mut Aggregate, row: &StoredRow<'_>) -> Result<(), StoreError> {
    follows(aggregate.last_seq, row.first_seq)?;
    for line in row.lines() {
        let Line { event: Event { seq, at, kind, .. }, payload } = line?;
        if let EventKind::StepCompleted { step, .. } | EventKind::WaitEnded { step, .. } = &kind
            && aggregate.has_result(step)
        {
            return Err(StoreError::Corrupt(format!("event {seq} is a second result of step {step}")));
        }
        aggregate.absorb(at, &kind);
        aggregate.weigh(&kind, payload.map_or(0, |place| place.bytes.len() as u64));
    }
    Ok(())
}

/// Refuses a row that does not begin where the one before it ended.
pub fn follows(last_seq: u64, first_seq: u64) -> Result<(), StoreError> {
    if first_seq == last_seq + 1 {
        return Ok(());
    }
    let expected = last_seq + 1;
    Err(StoreError::Corrupt(format!("a row of its history begins with event {first_seq}, not {expected}")))
}

/// The events of a row, one after the other.
#[derive(Debug, Clone)]
pub struct Lines<'a> {
    seq: u64,
    at: Timestamp,
    kinds: &'a [u8],
    detail: &'a [u8],
    payload_at: usize,
    /// Nothing was found wrong so far.
    whole: bool,
}

impl Iterator for Lines<'_> {
    type Item = Result<Line, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Some((&number, kinds)) = self.kinds.split_first() else {
            let left = !self.detail.is_empty() || !self.whole;
            (self.detail, self.whole) = (&[], true);
            return left.then(|| Err(damaged("it has more records than kinds")));
        };
        let record = if self.whole { take_delimited(&mut self.detail) } else { None };
        let Some(record) = record else {
            (self.kinds, self.detail, self.whole) = (&[], &[], true);
            return Some(Err(damaged("it is no list of records")));
        };
        self.kinds = kinds;
        let (kind, frame) = EventKind::decode(number, record);
        let payload = frame.payload_bytes.map(|bytes| {
            let from = self.payload_at;
            self.payload_at = from.saturating_add(usize::try_from(bytes).unwrap_or(usize::MAX));
            PayloadPlace {
                bytes: from..self.payload_at,
                content_type: frame.content_type.unwrap_or_else(Name::empty),
            }
        });
        let at = Timestamp(self.at.0.wrapping_add(frame.at_offset_us));
        let event = Event { seq: self.seq, at, kind, payload: None };
        self.seq += 1;
        Some(Ok(Line { event, payload }))
    }
}

fn damaged(why: &str) -> StoreError {
    StoreError::Corrupt(format!("could not read column detail: {why}"))
}

#[cfg(test)]
mod tests {
    use kagzi_model::{Millis, RunId};

    use super::*;
    use crate::EventRow;

    fn run(number: u128) -> RunId {
        RunId(uuid::Uuid::from_u128(number))
    }

    fn event(of: RunId, seq: u64, kind: EventKind, payload: Option<&[u8]>) -> EventRow {
        let payload = payload.map(|data| Payload::new(data.to_vec()));
        let event = Event { seq, at: Timestamp(1_000 + seq.cast_signed()), kind, payload };
        EventRow { namespace: Name::from("shop"), run: of, event }
    }

    fn result(of: RunId, seq: u64, bytes: usize) -> EventRow {
        let step = Name::from(format!("step-{seq}"));
        let kind = EventKind::StepCompleted { step, position: 0, attempt: 1, elapsed_ms: 7 as Millis };
        event(of, seq, kind, Some(&vec![b'x'; bytes]))
    }

    fn stored(row: &PackedRow) -> StoredRow<'_> {
        let PackedRow { first_seq, at, kinds, detail, .. } = row;
        StoredRow { first_seq: *first_seq, at: *at, kinds, detail }
    }

    fn unpacked(row: &PackedRow) -> Vec<Event> {
        let payloads = row.payload.clone().unwrap_or_default();
        let whole = |line: Result<Line, StoreError>| {
            let Line { event, payload } = line.unwrap();
            Event { payload: payload.map(|place| place.cut(&payloads).unwrap()), ..event }
        };
        stored(row).lines().map(whole).collect()
    }

    #[test]
    fn events_of_one_run_share_a_row_and_come_back_as_they_were() {
        let (a, b) = (run(1), run(2));
        let mut typed = result(a, 3, 5);
        typed.event.payload.as_mut().unwrap().content_type = Name::from("text/plain");
        let empty = event(b, 2, EventKind::RunCompleted, Some(b""));
        let events = [
            event(b, 1, EventKind::RunStarted, None),
            event(a, 1, EventKind::RunStarted, Some(b"{}")),
            result(a, 2, 100),
            empty,
            typed,
        ];

        let rows = pack(&events);

        let heads: Vec<_> = rows.iter().map(|row| (row.run, row.first_seq, &row.kinds[..])).collect();
        assert_eq!(heads, [(a, 1, &[1, 4, 4][..]), (b, 1, &[1, 13][..])]);
        let back: Vec<_> = rows.iter().flat_map(unpacked).collect();
        let wanted = [1, 2, 4, 0, 3].map(|at| events[at].event.clone());
        assert_eq!(back, wanted);
        assert_eq!(rows[1].payload.as_deref(), Some(&b""[..]), "an empty payload is one");
    }

    #[test]
    fn a_row_is_bounded_in_events_and_in_bytes_and_what_is_larger_is_alone() {
        let many: Vec<_> = (1..=300).map(|seq| result(run(1), seq, 1)).collect();
        let counts = |rows: Vec<PackedRow>| rows.iter().map(|row| row.kinds.len()).collect::<Vec<_>>();
        assert_eq!(counts(pack(&many)), [128, 128, 44]);

        let sizes = [10_000, 50_000, 10_000, 200_000, 1, 1];
        let large: Vec<_> = (1..).zip(sizes).map(|(seq, bytes)| result(run(1), seq, bytes)).collect();
        let rows = pack(&large);
        assert_eq!(counts(rows.clone()), [2, 1, 1, 2]);
        assert_eq!(rows.iter().map(|row| row.first_seq).collect::<Vec<_>>(), [1, 3, 4, 5]);
    }

    #[test]
    fn a_row_that_is_damaged_says_so_and_shows_what_comes_before() {
        let whole = pack(&[result(run(1), 1, 3), result(run(1), 2, 3)]).remove(0);
        let errors = |row: &PackedRow| stored(row).lines().filter(Result::is_err).count();
        assert_eq!(errors(&whole), 0);

        let cut = PackedRow { detail: whole.detail[..whole.detail.len() - 1].to_vec(), ..whole.clone() };
        assert_eq!((errors(&cut), stored(&cut).lines().count()), (1, 2));
        let other = PackedRow { detail: [&[9], &whole.detail[1..]].concat(), ..whole.clone() };
        assert_eq!((errors(&other), stored(&other).lines().count()), (1, 1));
        let fewer = PackedRow { kinds: vec![4], ..whole.clone() };
        assert_eq!(errors(&fewer), 1);
        let none = PackedRow { kinds: vec![], ..whole.clone() };
        assert_eq!(errors(&none), 1);
        let place = stored(&whole).lines().last().unwrap().unwrap().payload.unwrap();
        assert!(matches!(place.cut(&Bytes::from_static(b"short")), Err(StoreError::Corrupt(_))));
    }
}
