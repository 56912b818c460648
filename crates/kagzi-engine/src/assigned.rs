//! A leased run with all that a worker needs to execute it.

use std::collections::HashMap;

use kagzi_model::{Event, EventKind, Journal, JournalEntry, Name, Payload, Run};
use kagzi_store::{Assignment, EventFilter, EventRequest, LaneStats};

use crate::{Engine, EngineError};

/// Events that are read at once, and about how many bytes of payloads.
const PAGE_LEN: usize = 2_000;
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Lines of a history with much progress that are read at once without their payloads, and payloads that are.
const OUTLINE_PAGE: usize = 5_000;
const PAYLOADS_PAGE: usize = 500;
/// With more words of progress than this in a page, the rest is read without those that later ones replace.
const PROGRESS_MAX: usize = 100;

/// A run, its input and what is recorded of its steps.
#[derive(Debug, Clone)]
pub struct Assigned {
    pub run: Run,
    pub input: Payload,
    pub journal: Vec<JournalEntry>,
}

impl Assigned {
    /// Completes an assignment: most need no read, because the input came by a moment ago.
    pub async fn load(engine: &Engine, assignment: Assignment) -> Result<Assigned, EngineError> {
        let Assignment { run, input, fresh } = assignment;
        if fresh && let Some(input) = input {
            return Ok(Assigned { run, input, journal: Vec::new() });
        }
        let journals = &engine.hub().journals;
        let mut journal = journals.take(run.id);
        read_on(engine, &run, &mut journal).await?;
        let (input, entries) = (journal.input(), journal.entries());
        journals.keep(run.id, journal);
        Ok(Assigned { run, input, journal: entries })
    }
}

/// Takes in what happened since the journal was made.
async fn read_on(engine: &Engine, run: &Run, journal: &mut Journal) -> Result<(), EngineError> {
    loop {
        let request = EventRequest {
            filter: EventFilter::default(),
            beyond: Some(journal.last_seq()).filter(|seq| *seq > 0),
            upwards: true,
            limit: PAGE_LEN,
            bytes_max: PAGE_BYTES,
        };
        let piece = engine.store().replay(&run.namespace, run.id, &request).await?;
        LaneStats::add(&engine.store().stats().replay_events, piece.events.len() as u64);
        piece.events.iter().for_each(|event| journal.absorb(event));
        let progress = |event: &&Event| matches!(event.kind, EventKind::StepProgressed { .. });
        if !piece.more {
            return Ok(());
        }
        if piece.events.iter().filter(progress).count() > PROGRESS_MAX {
            for event in needed(engine, run, journal.last_seq()).await? {
                journal.absorb(&event);
            }
            return Ok(());
        }
    }
}

/// The rest of a long history with those payloads only that replay needs: of all that a step said of how far
/// it is, the last.
async fn needed(engine: &Engine, run: &Run, beyond: u64) -> Result<Vec<Event>, EngineError> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let after = events.last().map_or(beyond, |event| event.seq);
        let page = engine.store().outline(&run.namespace, run.id, after, OUTLINE_PAGE).await?;
        let last = page.len() < OUTLINE_PAGE;
        events.extend(page.into_iter().map(|line| line.event));
        if last {
            break;
        }
    }
    let mut progress: HashMap<&Name, u64> = HashMap::new();
    let mut seqs = Vec::new();
    for event in &events {
        match &event.kind {
            EventKind::StepProgressed { step, .. } => drop(progress.insert(step, event.seq)),
            kind => {
                if let EventKind::StepCompleted { step, .. } = kind {
                    // How far it was is of no use to anybody any more.
                    progress.remove(step);
                }
                if kind.payload_is().is_some() {
                    seqs.push(event.seq);
                }
            }
        }
    }
    seqs.extend(progress.into_values());
    for seqs in seqs.chunks(PAYLOADS_PAGE) {
        for (seq, payload) in engine.store().payloads(&run.namespace, run.id, seqs).await? {
            if let Ok(at) = events.binary_search_by_key(&seq, |event| event.seq) {
                events[at].payload = Some(payload);
            }
        }
    }
    Ok(events)
}
