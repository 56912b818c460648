//! WorkerHeartbeat: a sign of life that renews the leases it lists.

use kagzi_engine::{Delivery, Engine, EngineError};
use kagzi_model::{LeaseRef, Rejection, Status as RunStatus, WorkerStatus};
use kagzi_proto::{Reason, v1};
use kagzi_store::RegistryError;
use tonic::Status;

use super::get_worker;
use crate::{
    check::{self, invalid},
    status::from_engine,
};

/// Most runs in one heartbeat: as many as a worker may hold.
pub const RUNS_MAX: usize = kagzi_model::limits::CONCURRENT_PER_WORKER_MAX as usize;

pub async fn handle(
    engine: &Engine,
    request: v1::WorkerHeartbeatRequest,
) -> Result<v1::WorkerHeartbeatResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let id = check::worker_id(&request.worker_id)?;
    if request.runs.len() > RUNS_MAX {
        return Err(invalid("runs", request.runs.len(), format_args!("at most {RUNS_MAX} are allowed")));
    }
    let runs = request
        .runs
        .iter()
        .map(|run| check::lease_ref(&namespace, Some(run)))
        .collect::<Result<Vec<_>, _>>()?;
    // Read first: a worker of another namespace must not be spoken for.
    get_worker::read(engine, &namespace, id).await?;
    let answer = engine.beat(id, runs, Delivery::MayBeLost).await.map_err(|error| match error {
        // The worker must register again, so this is not the usual precondition.
        EngineError::Registry(refused @ (RegistryError::Unknown(_) | RegistryError::Offline(_))) => {
            Reason::WorkerNotFound.status(refused.to_string())
        }
        other => from_engine(other),
    })?;
    Ok(v1::WorkerHeartbeatResponse {
        accepted: true,
        should_drain: answer.status == WorkerStatus::Draining,
        lost: answer.lost.iter().map(|(lease, why)| lost(lease, why)).collect(),
    })
}

/// A lease that is no longer the worker's, and why.
pub fn lost(lease: &LeaseRef, why: &Rejection) -> v1::LostLease {
    v1::LostLease {
        lease: Some(v1::LeaseRef { run_id: lease.run.to_string(), epoch: lease.epoch }),
        reason: why.to_string(),
        cancelled: matches!(why, Rejection::Ended { status: RunStatus::Cancelled, .. }),
    }
}
