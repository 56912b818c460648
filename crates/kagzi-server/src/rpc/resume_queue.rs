//! ResumeQueue: a paused queue, or one type on it, goes on.

use kagzi_engine::Engine;
use kagzi_model::GateCommand;
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::ResumeQueueRequest,
) -> Result<v1::ResumeQueueResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let key = wire::read_gate_key(&namespace, &request.task_queue, &request.workflow_type)?;
    let gate = engine.change_gate(key, GateCommand::Resume).await.map_err(from_engine)?;
    Ok(v1::ResumeQueueResponse { gate: Some(wire::gate(&gate)) })
}
