//! One line of a run's history.

use std::time::SystemTime;

use kagzi_proto::{v1, words};
use serde_json::Value;

use crate::absent::{always, text};
use crate::payload::Payload;

/// One thing that happened to a run. Histories are numbered 1, 2, 3, … and never changed; the kinds and their
/// fields are listed in `docs/events.md`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// Its number.
    pub sequence: u64,
    /// When it happened, by the server's clock.
    pub at: SystemTime,
    /// What happened, e.g. `step_failed`.
    pub kind: String,
    /// The path of the step that it is about.
    pub step: Option<String>,
    /// Which attempt of that step; 0 where it is about none.
    pub attempt: u32,
    /// What else is known; `null` where nothing is.
    pub detail: Value,
    /// An input, a result, an output or progress.
    pub payload: Option<Payload>,
}

impl Event {
    pub(crate) fn from_proto(event: v1::RunEvent) -> Event {
        // What is no JSON came from a server of another kind; its text is still worth showing.
        let detail = match event.detail_json.as_str() {
            "" => Value::Null,
            json => serde_json::from_str(json).unwrap_or_else(|_| Value::String(json.to_owned())),
        };
        // A line of an old database whose kind nobody knows has a name and no number.
        let named = detail.get("event").and_then(Value::as_str).filter(|_| event.kind == 0);
        Event {
            sequence: event.sequence,
            at: always(event.at),
            kind: named.map_or_else(|| words::event_kind(event.kind), str::to_owned),
            step: text(event.step),
            attempt: event.attempt,
            detail,
            payload: event.payload.map(Payload::from_proto),
        }
    }
}

/// An empty event, for tests of programs that show histories.
impl Default for Event {
    fn default() -> Event {
        Event::from_proto(v1::RunEvent::default())
    }
}
