//! ReleaseRun: a run is given back unexecuted.

use kagzi_engine::Engine;
use kagzi_model::act;
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::ReleaseRunRequest,
) -> Result<v1::ReleaseRunResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let lease = wire::read_lease(&namespace, request.lease.as_ref(), (&request.run_id, request.lease_epoch))?;
    let why = check::reason(&request.reason)?;
    engine.report(&lease, act::Release { why }).await.map_err(from_engine)?;
    Ok(v1::ReleaseRunResponse {})
}
