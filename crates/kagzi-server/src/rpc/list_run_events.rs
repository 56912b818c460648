//! ListRunEvents: a run's history, oldest first.

use kagzi_engine::Engine;
use kagzi_proto::v1;
use tonic::Status;

use super::find_run;
use crate::{check, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::ListRunEventsRequest,
) -> Result<v1::ListRunEventsResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let run = find_run::run(engine, &namespace, &request.run_id).await?;
    engine.read_run(&namespace, run).await.map_err(from_engine)?;
    let limit = check::page_size(request.page_size, 1_000, 5_000)?;
    let after = request.after_sequence.min(i64::MAX as u64);
    let mut events = engine
        .store()
        .events(&namespace, run, after, limit + 1)
        .await
        .map_err(|error| from_engine(error.into()))?;
    let has_more = events.len() > limit;
    events.truncate(limit);
    Ok(v1::ListRunEventsResponse { events: events.into_iter().map(wire::event).collect(), has_more })
}
