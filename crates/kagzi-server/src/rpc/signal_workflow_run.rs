//! SignalWorkflowRun: somebody tells a run something.

use kagzi_engine::Engine;
use kagzi_model::{Name, RunKey, Signalled, act};
use kagzi_proto::v1;
use tonic::Status;
use uuid::Uuid;

use crate::{check, find, services::limits, status, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::SignalWorkflowRunRequest,
) -> Result<v1::SignalWorkflowRunResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let run = find::run_exactly(engine, &namespace, "", request.run.as_ref()).await?;
    let channel = check::channel(&request.channel)?;
    let named = check::optional_name("signal_id", &request.signal_id)?;
    let id = named.clone().unwrap_or_else(|| Name::from(Uuid::now_v7().to_string()));
    let payload = check::payload(limits(engine), "payload", request.payload)?;
    let failure = request.failure.map(|failure| wire::read_failure(Some(failure)));
    let by = check::author("")?;
    let signal = act::Signal { channel, id: id.clone(), payload, failure };
    let Signalled { already } =
        engine.order(RunKey::new(namespace, run), by, signal).await.map_err(|error| match named {
            Some(_) => status::from_engine(error),
            // Sent again it would be another signal.
            None => status::from_engine_once(error, "give the signal an id of your own"),
        })?;
    Ok(v1::SignalWorkflowRunResponse { already_delivered: already, signal_id: id.to_string() })
}
