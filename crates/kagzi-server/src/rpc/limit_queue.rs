//! LimitQueue: at most so many runs of a queue, or of one type on it, at once.

use kagzi_engine::Engine;
use kagzi_model::GateCommand;
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::LimitQueueRequest,
) -> Result<v1::LimitQueueResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let key = wire::read_gate_key(&namespace, &request.task_queue, &request.workflow_type)?;
    let max_concurrent = request.max_concurrent.map(check::gate_limit).transpose()?;
    let gate = engine.change_gate(key, GateCommand::Limit { max_concurrent }).await.map_err(from_engine)?;
    Ok(v1::LimitQueueResponse { gate: Some(wire::gate(&gate)) })
}
