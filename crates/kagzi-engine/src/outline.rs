//! A run's history read without its payloads: small, however much the run has recorded. What is read goes
//! into a view of it at once, and the payloads that the view needs are fetched by their numbers.

use std::collections::HashMap;

use kagzi_model::{Name, Payload, Projection, RunId};

use crate::{Engine, EngineError};

/// Events read at once.
const CHUNK_LEN: usize = 5_000;
/// Payloads fetched at once.
const PAYLOADS_LEN: usize = 500;

/// A view of a history, and the sizes of the payloads that were not read.
pub struct Outline<P> {
    pub view: P,
    bytes: HashMap<u64, usize>,
}

impl<P: Projection> Outline<P> {
    /// Takes in all events beyond the given one. Always all: a worker that is told half a journal runs
    /// recorded steps again.
    pub async fn read(
        engine: &Engine,
        (namespace, run): (&Name, RunId),
        view: P,
        beyond: u64,
    ) -> Result<Outline<P>, EngineError> {
        let mut outline = Outline { view, bytes: HashMap::new() };
        let mut after = beyond;
        loop {
            let chunk = engine.store().outline(namespace, run, after, CHUNK_LEN).await?;
            let last = chunk.len() < CHUNK_LEN;
            for line in chunk {
                after = line.event.seq;
                outline.view.absorb(&line.event);
                if let Some(bytes) = line.payload_bytes {
                    outline.bytes.insert(line.event.seq, usize::try_from(bytes).unwrap_or(usize::MAX));
                }
            }
            if last {
                return Ok(outline);
            }
        }
    }

    /// How large the payload of an event is.
    pub fn payload_bytes(&self, seq: u64) -> usize {
        self.bytes.get(&seq).copied().unwrap_or(0)
    }
}

impl Engine {
    /// The payloads of these events.
    pub async fn payloads(
        &self,
        namespace: &Name,
        run: RunId,
        seqs: &[u64],
    ) -> Result<HashMap<u64, Payload>, EngineError> {
        let mut found = HashMap::with_capacity(seqs.len());
        for seqs in seqs.chunks(PAYLOADS_LEN) {
            found.extend(self.store().payloads(namespace, run, seqs).await?);
        }
        Ok(found)
    }
}
