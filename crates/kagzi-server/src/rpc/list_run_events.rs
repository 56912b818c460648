//! ListRunEvents: a run's history, oldest first.

use kagzi_engine::Engine;
use kagzi_model::Event;
use kagzi_proto::v1;
use tonic::Status;

use super::find_run;
use crate::{check, status::from_engine, wire};

/// A page is closed before its payloads are larger than this, so that a client can decode it whatever it holds.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Events read at a time: a thousand with payloads at the limit would be two gigabytes.
const CHUNK_LEN: usize = 32;

pub async fn handle(
    engine: &Engine,
    request: v1::ListRunEventsRequest,
) -> Result<v1::ListRunEventsResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let run = find_run::run(engine, &namespace, &request.run_id).await?;
    engine.read_run(&namespace, run).await.map_err(from_engine)?;
    let limit = check::page_size(request.page_size, 1_000, 5_000)?;
    let after = request.after_sequence.min(i64::MAX as u64);
    let mut events: Vec<Event> = Vec::new();
    let mut bytes = 0;
    loop {
        let seen = events.last().map_or(after, |event| event.seq);
        let wanted = CHUNK_LEN.min(limit - events.len());
        // One more than is wanted, to know whether there is more.
        let chunk = engine.store().events(&namespace, run, seen, wanted + 1).await;
        let chunk = chunk.map_err(|error| from_engine(error.into()))?;
        let more = chunk.len() > wanted;
        for event in chunk.into_iter().take(wanted) {
            bytes += event.payload.as_ref().map_or(0, |payload| payload.data.len());
            if bytes > PAGE_BYTES && !events.is_empty() {
                return Ok(page(events, true));
            }
            events.push(event);
        }
        if !more || events.len() == limit {
            return Ok(page(events, more));
        }
    }
}

fn page(events: Vec<Event>, has_more: bool) -> v1::ListRunEventsResponse {
    v1::ListRunEventsResponse { events: events.into_iter().map(wire::event).collect(), has_more }
}
