//! SetLabel: labels a run, once per step id.

use kagzi_engine::Engine;
use kagzi_model::{Done, act};
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, status::from_engine, wire};

pub async fn handle(engine: &Engine, request: v1::SetLabelRequest) -> Result<v1::SetLabelResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let lease = wire::read_lease(&namespace, request.lease.as_ref(), (&request.run_id, request.lease_epoch))?;
    let step = wire::read_step(request.step.as_ref(), &request.step_id, request.position)?;
    let (name, value) = check::label(&request.name, &request.value)?;
    let report = engine.report(&lease, act::SetLabel { step, name, value });
    let Done { already } = report.await.map_err(from_engine)?;
    Ok(v1::SetLabelResponse { already_recorded: already })
}
