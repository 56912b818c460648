//! PauseQueue: nothing more of a queue, or of one type on it, is claimed.

use kagzi_engine::Engine;
use kagzi_model::GateCommand;
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::PauseQueueRequest,
) -> Result<v1::PauseQueueResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let key = wire::read_gate_key(&namespace, &request.task_queue, &request.workflow_type)?;
    let command = GateCommand::Pause { by: wire::read_by(&request.by)?, note: check::note(&request.note)? };
    let gate = engine.change_gate(key, command).await.map_err(from_engine)?;
    Ok(v1::PauseQueueResponse { gate: Some(wire::gate(&gate)) })
}
