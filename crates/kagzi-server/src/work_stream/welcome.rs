//! The greeting: a new worker is registered, one that comes back keeps what it still holds.

use kagzi_engine::{Delivery, EngineError, Session};
use kagzi_model::{LeaseRef, Name, Registration, WorkerId, WorkerStatus};
use kagzi_proto::v1;
use kagzi_store::BeatAnswer;
use tonic::Status;

use crate::{
    check::{self, invalid},
    rpc::worker_heartbeat::lost,
    services::{Services, heartbeat_interval_ms},
    status::from_engine,
    wire,
};

/// Registers or recognises the worker and lets it stand by.
pub async fn greet(services: &Services, hello: v1::Hello) -> Result<(v1::Welcome, Name, Session), Status> {
    let Some(registration) = hello.registration else {
        return Err(invalid("registration", "", "it must be set"));
    };
    let registration = wire::read_registration(registration)?;
    let namespace = registration.namespace.clone();
    let held = hello
        .holding
        .iter()
        .map(|lease| check::lease_ref(&namespace, Some(lease)))
        .collect::<Result<Vec<_>, _>>()?;
    let (worker, answer) = match returning(services, &hello.worker_id, held.clone()).await? {
        Some(known) => known,
        None => register(services, registration.clone(), held).await?,
    };
    // A worker that is draining still finishes and reports what it holds; it just gets nothing new.
    let types = registration.workflow_types;
    let session = match Session::open(&services.engine, worker, types).await {
        Ok(session) => session,
        Err(error) => return Err(from_engine(error)),
    };
    let settings = services.engine.settings();
    let welcome = v1::Welcome {
        worker_id: worker.to_string(),
        heartbeat_interval_ms: heartbeat_interval_ms(&services.engine),
        stale_after_ms: i64::try_from(settings.stale_after.as_millis()).unwrap_or(i64::MAX),
        lost: answer.lost.iter().map(|(lease, why)| lost(lease, why)).collect(),
        payload_max_bytes: settings.payload_max_bytes as u64,
    };
    Ok((welcome, namespace, session))
}

/// A worker that names its former id and is still in the registry keeps it.
async fn returning(
    services: &Services,
    id: &str,
    held: Vec<LeaseRef>,
) -> Result<Option<(WorkerId, BeatAnswer)>, Status> {
    if id.is_empty() {
        return Ok(None);
    }
    let id = check::worker_id(id)?;
    match services.engine.beat(id, held, Delivery::Reconnected).await {
        Ok(answer) => Ok(Some((id, answer))),
        // Declared lost meanwhile, or unknown to this database: it starts anew, its leases are looked at one by one.
        Err(EngineError::Registry(_)) => Ok(None),
        Err(error) => Err(from_engine(error)),
    }
}

async fn register(
    services: &Services,
    registration: Registration,
    held: Vec<LeaseRef>,
) -> Result<(WorkerId, BeatAnswer), Status> {
    let engine = &services.engine;
    let worker = engine.register(registration).await.map_err(from_engine)?;
    let answer = if held.is_empty() {
        BeatAnswer { status: WorkerStatus::Online, lost: Vec::new() }
    } else {
        engine.beat(worker.id, held, Delivery::Ordered).await.map_err(from_engine)?
    };
    Ok((worker.id, answer))
}
