//! SignalWorkflowRun: somebody tells a run something.

use kagzi_engine::{Engine, EngineError};
use kagzi_model::{Answer, Command, Name, RunKey, Signalled, act};
use kagzi_proto::v1;
use kagzi_store::Outcome;
use tonic::Status;
use uuid::Uuid;

use crate::{check, find, services::limits, status, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::SignalWorkflowRunRequest,
) -> Result<v1::SignalWorkflowRunResponse, Status> {
    let (command, said) = read(engine, request).await?;
    match engine.apply_one(command).await {
        Ok(reply) => said.answer(Ok(reply)),
        Err(error) => Err(said.failed(error)),
    }
}

/// Tells each on its own, all in one commit; what is wrong with one does not stop the others.
pub async fn signal_each(
    engine: &Engine,
    requests: impl IntoIterator<Item = Box<v1::SignalWorkflowRunRequest>, IntoIter: ExactSizeIterator>,
) -> Vec<Result<v1::SignalWorkflowRunResponse, Status>> {
    let requests = requests.into_iter();
    let mut commands = Vec::with_capacity(requests.len());
    let mut read_each = Vec::with_capacity(requests.len());
    for request in requests {
        read_each.push(read(engine, *request).await.map(|(command, said)| {
            commands.push(command);
            said
        }));
    }
    match engine.apply(commands).await {
        Ok(outcomes) => {
            let mut outcomes = outcomes.into_iter();
            let mut answer =
                |said: Said| said.answer(outcomes.next().expect("every good signal has one outcome"));
            read_each.into_iter().map(|read| read.and_then(&mut answer)).collect()
        }
        Err(error) => {
            let failed = |read: Result<Said, Status>| read.and_then(|said| Err(said.failed(error.clone())));
            read_each.into_iter().map(failed).collect()
        }
    }
}

/// The run is named by its business id.
pub fn is_looked_up(request: &v1::SignalWorkflowRunRequest) -> bool {
    let named = request.run.as_ref().and_then(|run| run.r#ref.as_ref());
    matches!(named, Some(v1::run_ref::Ref::BusinessId(_)))
}

/// What the answer needs of a request.
struct Said {
    id: Name,
    /// The caller named it, so that a repeat is recognised.
    named: bool,
}

async fn read(engine: &Engine, request: v1::SignalWorkflowRunRequest) -> Result<(Command, Said), Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let run = find::run_exactly(engine, &namespace, "", request.run.as_ref()).await?;
    let channel = check::channel(&request.channel)?;
    let named = check::optional_name("signal_id", &request.signal_id)?;
    let said = Said { named: named.is_some(), id: named.unwrap_or_else(new_id) };
    let payload = check::payload(limits(engine), "payload", request.payload)?;
    let failure = request.failure.map(|failure| wire::read_failure(Some(failure)));
    let by = check::author("")?;
    let signal = act::Signal { channel, id: said.id.clone(), payload, failure };
    Ok((RunKey::new(namespace, run).order(by, signal), said))
}

fn new_id() -> Name {
    Name::from(Uuid::now_v7().to_string())
}

impl Said {
    fn answer(self, outcome: Outcome) -> Result<v1::SignalWorkflowRunResponse, Status> {
        let reply = outcome.map_err(|rejection| status::from_rejection(&rejection))?;
        let Signalled { already } = Signalled::of(reply).expect("a signal is answered by its own rule");
        Ok(v1::SignalWorkflowRunResponse { already_delivered: already, signal_id: self.id.to_string() })
    }

    fn failed(&self, error: EngineError) -> Status {
        match self.named {
            true => status::from_engine(error),
            // Sent again it would be another signal.
            false => status::from_engine_once(error, "give the signal an id of your own"),
        }
    }
}
