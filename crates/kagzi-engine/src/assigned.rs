//! A leased run with all that a worker needs to execute it.

use kagzi_model::{Payload, Run};
use kagzi_store::{Assignment, JournalEntry, journal};

use crate::{Engine, EngineError};

/// Events read at once while building a journal.
const EVENTS_PAGE: usize = 5_000;

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
        let mut events = Vec::new();
        loop {
            let after = events.last().map_or(0, |event: &kagzi_model::Event| event.seq);
            let page = engine.store().events(&run.namespace, run.id, after, EVENTS_PAGE).await?;
            let last = page.len() < EVENTS_PAGE;
            events.extend(page);
            if last {
                break;
            }
        }
        let input = events.first().and_then(|event| event.payload.clone());
        let input = input.unwrap_or_else(|| Payload::new(&b""[..]));
        Ok(Assigned { run, input, journal: journal(&events) })
    }
}
