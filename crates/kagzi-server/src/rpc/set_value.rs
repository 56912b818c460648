//! SetValue: a unary worker publishes a value of its run.

use kagzi_engine::Engine;
use kagzi_model::Done;
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, services::limits, status::from_engine};

pub async fn handle(engine: &Engine, request: v1::SetValueRequest) -> Result<v1::SetValueResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let lease = check::lease_ref(&namespace, request.lease.as_ref())?;
    let set = check::value(limits(engine), &request.name, request.number, request.value)?;
    let Done { already } = engine.report(&lease, set).await.map_err(from_engine)?;
    Ok(v1::SetValueResponse { already_set: already })
}
