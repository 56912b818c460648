//! AwaitSignal: a unary worker waits for a signal, or asks a person; the lease ends if none has come.

use kagzi_engine::{Engine, Told};
use kagzi_model::act;
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::AwaitSignalRequest,
) -> Result<v1::AwaitSignalResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let lease = check::lease_ref(&namespace, request.lease.as_ref())?;
    let named = request.step.unwrap_or_default();
    if let Some(asked) = request.ask {
        let step = check::step(&named.path, named.position)?;
        let ask = act::Ask { step, ask: Box::new(check::question(asked)?), park: true };
        let waited = engine.report(&lease, ask).await.map_err(from_engine)?;
        let told = engine.told(&lease.key(), waited).await.map_err(from_engine)?;
        let parked = matches!(told, Told::Waiting { .. });
        return Ok(v1::AwaitSignalResponse { waited: Some(wire::waited(told)), parked });
    }
    let wait = act::AwaitSignal {
        step: check::step(&named.path, named.position)?,
        channel: check::awaited_channel(&request.channel)?,
        timeout_ms: check::wait_ms("timeout_ms", request.timeout_ms)?,
        last_call: request.last_call,
        park: true,
    };
    let waited = engine.report(&lease, wait).await.map_err(from_engine)?;
    let told = engine.told(&lease.key(), waited).await.map_err(from_engine)?;
    let parked = matches!(told, Told::Waiting { .. });
    Ok(v1::AwaitSignalResponse { waited: Some(wire::waited(told)), parked })
}
