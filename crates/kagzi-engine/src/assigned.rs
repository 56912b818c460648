//! A leased run with all that a worker needs to execute it.

use std::borrow::Cow;
use std::sync::Arc;

use kagzi_model::{Event, EventKind, Journal, JournalEntry, Payload, Projection, Run};
use kagzi_store::{Assignment, EventFilter, EventRequest, LaneStats};

use crate::{Engine, EngineError, Outline};

/// Events that are read at once, and about how many bytes of payloads.
const PAGE_LEN: usize = 2_000;
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// With more words of progress than this in a page, the rest is read without those that later ones replace.
const PROGRESS_MAX: usize = 100;

/// A run, its input and what is recorded of its steps.
#[derive(Debug, Clone)]
pub struct Assigned {
    pub run: Run,
    pub input: Payload,
    /// None = nothing is recorded yet.
    pub journal: Option<Arc<Journal>>,
}

impl Assigned {
    /// Completes an assignment: most need no read, because the input came by a moment ago.
    pub async fn load(engine: &Engine, assignment: Assignment) -> Result<Assigned, EngineError> {
        let Assignment { run, input, fresh } = assignment;
        if fresh && let Some(input) = input {
            return Ok(Assigned { run, input, journal: None });
        }
        let journals = &engine.hub().journals;
        // What is kept of a generation before is of no use any more.
        let kept = Some(journals.take(run.id)).filter(|kept| kept.last_seq() >= run.first_seq);
        let journal = read_on(engine, &run, kept.unwrap_or_default()).await?;
        let input = journal.input();
        let journal = Arc::new(journal);
        journals.keep(run.id, Arc::clone(&journal));
        Ok(Assigned { run, input, journal: Some(journal) })
    }

    /// What is recorded of its steps, in the order in which they were first recorded.
    pub fn entries(&self) -> impl Iterator<Item = Cow<'_, JournalEntry>> {
        self.journal.iter().flat_map(|journal| journal.walk())
    }
}

/// Takes in what happened since the journal was made: the one way in which a journal is read, whole for a
/// stream and by pages ([`Outline`]) for workers without one.
async fn read_on(engine: &Engine, run: &Run, mut journal: Journal) -> Result<Journal, EngineError> {
    loop {
        let beyond = journal.last_seq().max(run.first_seq - 1);
        let request = EventRequest {
            filter: EventFilter::default(),
            beyond: Some(beyond).filter(|seq| *seq > 0),
            upwards: true,
            limit: PAGE_LEN,
            bytes_max: PAGE_BYTES,
        };
        let piece = engine.store().replay(&run.namespace, run.id, &request).await?;
        LaneStats::add(&engine.store().stats().replay_events, piece.events.len() as u64);
        piece.events.iter().for_each(|event| journal.absorb(event));
        if !piece.more {
            return filled(engine, run, journal).await;
        }
        let progress = |event: &&Event| matches!(event.kind, EventKind::StepProgressed { .. });
        if piece.events.iter().filter(progress).count() > PROGRESS_MAX {
            let beyond = journal.last_seq();
            let outline = Outline::read(engine, (&run.namespace, run.id), journal, beyond).await?;
            return filled(engine, run, outline.view).await;
        }
    }
}

/// Adds the payloads that were not read with their events: those of an outline, and of signals that were told
/// to the run before this generation.
async fn filled(engine: &Engine, run: &Run, mut journal: Journal) -> Result<Journal, EngineError> {
    let missing = journal.missing();
    if !missing.is_empty() {
        let payloads = engine.payloads(&run.namespace, run.id, &missing).await?;
        payloads.into_iter().for_each(|(seq, payload)| journal.fill(seq, payload));
    }
    Ok(journal)
}
