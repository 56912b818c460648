//! DeleteTrigger: events of its topic start no run any more.

use kagzi_engine::Engine;
use kagzi_model::DeleteTrigger;
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, status::from_engine};

pub async fn handle(
    engine: &Engine,
    request: v1::DeleteTriggerRequest,
) -> Result<v1::DeleteTriggerResponse, Status> {
    let rule = DeleteTrigger {
        namespace: check::namespace(&request.namespace_id)?,
        id: check::name("trigger_id", &request.trigger_id)?,
    };
    engine.change_noun(rule).await.map_err(from_engine)?;
    Ok(v1::DeleteTriggerResponse {})
}
