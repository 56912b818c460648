//! WatchQueues: what waits and runs on each queue, as it changes.

use kagzi_engine::Engine;
use kagzi_proto::v1;
use tonic::Status;

use super::list_queues;
use crate::{
    check,
    services::Services,
    watch::{self, Changes, Look, Outgoing, Told, Watch},
};

/// Queues that one watch looks at.
const QUEUES_MAX: i32 = 1_000;

pub fn open(
    services: &Services,
    request: v1::WatchQueuesRequest,
) -> Result<Outgoing<v1::WatchQueuesResponse>, Status> {
    check::namespace(&request.namespace_id)?;
    let engine = services.engine.clone();
    watch::open(services, Queues { engine, request, gate: None, told: Told::default() })
}

struct Queues {
    engine: Engine,
    request: v1::WatchQueuesRequest,
    gate: Option<v1::Gate>,
    told: Told,
}

impl Watch for Queues {
    type News = v1::WatchQueuesResponse;

    async fn look(&mut self) -> Result<Look<v1::WatchQueuesResponse>, Status> {
        let request = v1::ListQueuesRequest {
            namespace_id: self.request.namespace_id.clone(),
            task_queue: self.request.task_queue.clone(),
            page_size: QUEUES_MAX,
            ..v1::ListQueuesRequest::default()
        };
        let found = list_queues::handle(&self.engine, request).await?;
        let moved = self.gate != found.namespace_gate;
        self.gate = found.namespace_gate;
        let changes = self.told.changes(found.queues, |queue| &queue.task_queue);
        if changes.is_none() && !moved {
            return Ok(Look::Nothing);
        }
        let Changes { changed, gone } = changes.unwrap_or(Changes { changed: Vec::new(), gone: Vec::new() });
        Ok(Look::News(v1::WatchQueuesResponse { queues: changed, gone, namespace_gate: self.gate.clone() }))
    }
}
