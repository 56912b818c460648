//! A run's history without its payloads: a bound on memory, however much the run has recorded.

use std::collections::HashMap;

use kagzi_engine::Engine;
use kagzi_model::{Event, Name, Payload, RunId};
use tonic::Status;

use crate::status::from_engine;

/// Events of one run that are read: more than the steps of a run allow.
const EVENTS_MAX: usize = 300_000;
/// Events read at once.
const CHUNK_LEN: usize = 5_000;

/// Events without payloads, oldest first, and the sizes of those payloads.
pub struct Outline {
    pub events: Vec<Event>,
    bytes: HashMap<u64, usize>,
}

impl Outline {
    /// All events of a run.
    pub async fn read(engine: &Engine, namespace: &Name, run: RunId) -> Result<Outline, Status> {
        let mut outline = Outline { events: Vec::new(), bytes: HashMap::new() };
        loop {
            let after = outline.events.last().map_or(0, |event| event.seq);
            let chunk = engine.store().outline(namespace, run, after, CHUNK_LEN).await;
            let chunk = chunk.map_err(|error| from_engine(error.into()))?;
            let last = chunk.len() < CHUNK_LEN;
            for line in chunk {
                if let Some(bytes) = line.payload_bytes {
                    outline.bytes.insert(line.event.seq, usize::try_from(bytes).unwrap_or(usize::MAX));
                }
                outline.events.push(line.event);
            }
            if last || outline.events.len() >= EVENTS_MAX {
                return Ok(outline);
            }
        }
    }

    /// How large the payload of an event is.
    pub fn payload_bytes(&self, seq: u64) -> usize {
        self.bytes.get(&seq).copied().unwrap_or(0)
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
