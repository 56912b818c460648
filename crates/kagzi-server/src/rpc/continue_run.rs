//! ContinueRun: the run begins anew with another input.

use kagzi_engine::Engine;
use kagzi_model::act;
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, services::limits, status::from_engine};

pub async fn handle(
    engine: &Engine,
    request: v1::ContinueRunRequest,
) -> Result<v1::ContinueRunResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let lease = check::lease_ref(&namespace, request.lease.as_ref())?;
    let input = check::payload(limits(engine), "input", request.input)?;
    engine.report(&lease, act::Continue { steps: Vec::new(), input }).await.map_err(from_engine)?;
    Ok(v1::ContinueRunResponse {})
}
