//! WatchRun: a run's history as it grows.

use kagzi_engine::Engine;
use kagzi_model::{Name, RunId};
use kagzi_proto::v1;
use kagzi_store::{EventFilter, EventRequest};
use tonic::Status;

use crate::{
    check, find,
    services::Services,
    status::from_engine,
    watch::{self, Look, Outgoing, Watch},
    wire,
};

/// Events of one message, and bytes of their payloads unless it is one event.
const EVENTS_MAX: usize = 256;
const EVENT_BYTES_MAX: usize = 1024 * 1024;

pub async fn open(
    services: &Services,
    request: v1::WatchRunRequest,
) -> Result<Outgoing<v1::WatchRunResponse>, Status> {
    let engine = services.engine.clone();
    let namespace = check::namespace(&request.namespace_id)?;
    let run = find::run(&engine, &namespace, "", request.run.as_ref()).await?;
    engine.read_run(&namespace, run).await.map_err(from_engine)?;
    let after = request.after_sequence.min(i64::MAX as u64);
    watch::open(services, History { engine, namespace, run, after })
}

struct History {
    engine: Engine,
    namespace: Name,
    run: RunId,
    after: u64,
}

impl Watch for History {
    type News = v1::WatchRunResponse;

    async fn look(&mut self) -> Result<Look<v1::WatchRunResponse>, Status> {
        let request = EventRequest {
            filter: EventFilter { after: self.after, ..EventFilter::default() },
            beyond: None,
            upwards: true,
            limit: EVENTS_MAX,
            bytes_max: EVENT_BYTES_MAX,
        };
        // Whether it lives before what happened: of a run that has ended no event is missing when the watch
        // ends.
        let living = self.engine.store().living(&[(self.namespace.clone(), self.run)]).await;
        let living = !living.map_err(|error| from_engine(error.into()))?.is_empty();
        let piece = self.engine.store().history(&self.namespace, self.run, &request).await;
        let piece = piece.map_err(|error| from_engine(error.into()))?;
        let Some(last) = piece.events.last() else {
            return Ok(if living { Look::Nothing } else { Look::End });
        };
        self.after = last.seq;
        let events = piece.events.into_iter().map(wire::event).collect();
        Ok(Look::News(v1::WatchRunResponse { events }))
    }
}
