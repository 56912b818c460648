//! The greeting: a new worker is registered, one that comes back keeps what it still holds.

use kagzi_engine::{Delivery, Engine, EngineError, Session};
use kagzi_model::{LeaseRef, Name, Registration, WorkerId, WorkerStatus};
use kagzi_proto::v1;
use kagzi_store::{BeatAnswer, RegistryError};
use tonic::Status;

use crate::{
    check::{self, invalid},
    rpc::worker_heartbeat::{RUNS_MAX, lost},
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
    if hello.holding.len() > RUNS_MAX {
        return Err(invalid("holding", hello.holding.len(), format_args!("at most {RUNS_MAX} are allowed")));
    }
    let namespace = registration.namespace.clone();
    let held = hello
        .holding
        .iter()
        .map(|lease| check::lease_ref(&namespace, Some(lease)))
        .collect::<Result<Vec<_>, _>>()?;
    let (worker, answer) = match recognise(services, &hello.worker_id, &registration, held.clone()).await? {
        Known::Here(worker, answer) => (worker, answer),
        Known::Not(id) => register(services, id, registration.clone(), held.clone()).await?,
    };
    // A worker that is draining still finishes and reports what it holds; it just gets nothing new.
    let types = registration.workflow_types;
    let mut session = Session::open(&services.engine, worker, types).await.map_err(from_engine)?;
    held.iter().for_each(|lease| session.hold(lease));
    answer.lost.iter().for_each(|(lease, _)| session.let_go(lease.run, lease.epoch));
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

/// Whether the registry has the worker.
enum Known {
    Here(WorkerId, BeatAnswer),
    /// Not yet, or no longer: this is the id to register it by.
    Not(WorkerId),
}

/// A worker that names its id and is still in the registry keeps it, even when it never heard our welcome:
/// what was leased to it meanwhile is given back, because it does not hold it.
async fn recognise(
    services: &Services,
    id: &str,
    registration: &Registration,
    held: Vec<LeaseRef>,
) -> Result<Known, Status> {
    if id.is_empty() {
        return Ok(Known::Not(Engine::new_worker_id()));
    }
    let id = check::worker_id(id)?;
    let of = (registration.namespace.clone(), registration.task_queue.clone());
    match services.engine.reconnect(id, of, held).await {
        Ok(answer) => Ok(Known::Here(id, answer)),
        Err(EngineError::Registry(RegistryError::Unknown(_))) => Ok(Known::Not(id)),
        // Declared lost meanwhile: it starts anew, its leases are looked at one by one.
        Err(EngineError::Registry(RegistryError::Offline(_))) => Ok(Known::Not(Engine::new_worker_id())),
        Err(error) => Err(from_engine(error)),
    }
}

async fn register(
    services: &Services,
    id: WorkerId,
    registration: Registration,
    held: Vec<LeaseRef>,
) -> Result<(WorkerId, BeatAnswer), Status> {
    let engine = &services.engine;
    let worker = engine.register(id, registration).await.map_err(from_engine)?;
    let answer = if held.is_empty() {
        BeatAnswer { status: WorkerStatus::Online, lost: Vec::new() }
    } else {
        engine.beat(worker.id, held, Delivery::Ordered).await.map_err(from_engine)?
    };
    Ok((worker.id, answer))
}
