//! A leased run with all that a worker needs to execute it.

use std::collections::HashMap;

use kagzi_model::{Event, EventKind, Name, Payload, Run};
use kagzi_store::{Assignment, EventFilter, EventRequest, JournalEntry, journal};

use crate::{Engine, EngineError};

/// Most histories are shorter and smaller than this, and are read at once.
const WHOLE_LEN_MAX: usize = 1_000;
const WHOLE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Lines of a longer history that are read at once, without their payloads, and payloads that are read at once.
const OUTLINE_PAGE: usize = 5_000;
const PAYLOADS_PAGE: usize = 500;

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
        let whole = EventRequest {
            filter: EventFilter::default(),
            beyond: None,
            upwards: true,
            limit: WHOLE_LEN_MAX,
            bytes_max: WHOLE_BYTES_MAX,
        };
        let piece = engine.store().replay(&run.namespace, run.id, &whole).await?;
        let events = if piece.more { needed(engine, &run).await? } else { piece.events };
        let input = events.first().and_then(|event| event.payload.clone());
        let input = input.unwrap_or_else(|| Payload::new(&b""[..]));
        Ok(Assigned { run, input, journal: journal(&events) })
    }
}

/// A long history with those payloads only that replay needs: of all that a step said of how far it is, the last.
async fn needed(engine: &Engine, run: &Run) -> Result<Vec<Event>, EngineError> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.seq);
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
            EventKind::RunStarted => seqs.push(event.seq),
            EventKind::StepCompleted { step, .. } => {
                // How far it was is of no use to anybody any more.
                progress.remove(step);
                seqs.push(event.seq);
            }
            EventKind::RunClaimed { .. }
            | EventKind::StepStarted { .. }
            | EventKind::StepFailed { .. }
            | EventKind::SleepScheduled { .. }
            | EventKind::SleepOver { .. }
            | EventKind::RunParked { .. }
            | EventKind::RunReleased { .. }
            | EventKind::LeaseLost { .. }
            | EventKind::RunPaused { .. }
            | EventKind::RunResumed { .. }
            | EventKind::StepClosed { .. }
            | EventKind::Unknown { .. }
            | EventKind::RunCompleted
            | EventKind::RunFailed { .. }
            | EventKind::RunCancelled { .. }
            | EventKind::RunTimedOut { .. }
            | EventKind::RunRetried { .. }
            | EventKind::RunReopened { .. }
            | EventKind::HandlerStarted { .. }
            | EventKind::HandlerEnded { .. }
            | EventKind::LabelSet { .. } => {}
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
