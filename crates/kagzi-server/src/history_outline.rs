//! A run's history without its payloads, and without what later lines made superfluous: small, however much
//! the run has recorded.

use std::collections::HashMap;

use kagzi_engine::Engine;
use kagzi_model::{Event, EventKind, Name, Payload, RunId};
use tonic::Status;

use crate::status::from_engine;

/// Events read at once.
const CHUNK_LEN: usize = 5_000;

/// Events without payloads, oldest first, and the sizes of those payloads.
pub struct Outline {
    pub events: Vec<Event>,
    bytes: HashMap<u64, usize>,
}

impl Outline {
    /// All events of a run. Always all: a worker that is told half a journal runs recorded steps again.
    pub async fn read(engine: &Engine, namespace: &Name, run: RunId) -> Result<Outline, Status> {
        let mut outline = Outline { events: Vec::new(), bytes: HashMap::new() };
        let mut progress = Progress::default();
        let mut after = 0;
        loop {
            let chunk = engine.store().outline(namespace, run, after, CHUNK_LEN).await;
            let chunk = chunk.map_err(|error| from_engine(error.into()))?;
            let last = chunk.len() < CHUNK_LEN;
            for line in chunk {
                after = line.event.seq;
                if let Some(superseded) = progress.superseded_by(&line.event) {
                    outline.forget(superseded);
                }
                if let Some(bytes) = line.payload_bytes {
                    outline.bytes.insert(line.event.seq, usize::try_from(bytes).unwrap_or(usize::MAX));
                }
                outline.events.push(line.event);
            }
            if last {
                return Ok(outline);
            }
        }
    }

    fn forget(&mut self, seq: u64) {
        self.bytes.remove(&seq);
        if let Ok(at) = self.events.binary_search_by_key(&seq, |event| event.seq) {
            self.events.remove(at);
        }
    }

    /// How large the payload of an event is.
    pub fn payload_bytes(&self, seq: u64) -> usize {
        self.bytes.get(&seq).copied().unwrap_or(0)
    }
}

/// Of all that a step said of how far it is, the first line counts for its place in the journal and the last
/// for what it said: between two looks a long step may have said it a hundred thousand times.
#[derive(Default)]
struct Progress {
    last: HashMap<Name, u64>,
    first: HashMap<Name, u64>,
}

impl Progress {
    /// The line that this one makes superfluous.
    fn superseded_by(&mut self, event: &Event) -> Option<u64> {
        let EventKind::StepProgressed { step, .. } = &event.kind else { return None };
        let first = *self.first.entry(step.clone()).or_insert(event.seq);
        self.last.insert(step.clone(), event.seq).filter(|former| *former != first)
    }
}

/// The payloads of these events.
pub async fn payloads(
    engine: &Engine,
    namespace: &Name,
    run: RunId,
    seqs: &[u64],
) -> Result<HashMap<u64, Payload>, Status> {
    if seqs.is_empty() {
        return Ok(HashMap::new());
    }
    let found = engine.store().payloads(namespace, run, seqs).await;
    Ok(found.map_err(|error| from_engine(error.into()))?.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use kagzi_model::Timestamp;

    use super::*;

    fn progressed(seq: u64, step: &str) -> Event {
        let kind = EventKind::StepProgressed { step: step.into(), position: 0, attempt: 1 };
        Event { seq, at: Timestamp(0), kind, payload: None }
    }

    #[test]
    fn of_what_a_step_said_the_first_and_the_last_are_kept() {
        let mut progress = Progress::default();
        let said = [(1, "a"), (2, "a"), (3, "b"), (4, "a"), (5, "b"), (6, "a")];

        let superseded = said.map(|(seq, step)| progress.superseded_by(&progressed(seq, step)));

        assert_eq!(superseded, [None, None, None, Some(2), None, Some(4)]);
    }
}
