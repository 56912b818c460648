//! AskWorkflowRun: a request to a running workflow, and the wait for its answer.

use kagzi_engine::{Answered, Engine};
use kagzi_model::{Failure, Name, RunKey, Signalled, act};
use kagzi_proto::{REJECTED, Reason, Refusal, reply_path, v1};
use tonic::Status;
use uuid::Uuid;

use super::wait_workflow_run::wait_time;
use crate::{check, find, services::limits, status, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::AskWorkflowRunRequest,
) -> Result<v1::AskWorkflowRunResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let timeout = wait_time(engine, request.timeout_ms)?;
    let channel = check::channel(&request.channel)?;
    let named = check::optional_name("ask_id", &request.ask_id)?;
    let payload = check::payload(limits(engine), "payload", request.payload)?;
    let run = find::run_exactly(engine, &namespace, "", request.run.as_ref()).await?;
    let by = check::author("")?;
    let id = named.clone().unwrap_or_else(|| Name::from(Uuid::now_v7().to_string()));
    let path = Name::from(reply_path(&channel, &id));
    let key = RunKey::new(namespace, run);
    let signal = act::Signal { channel: channel.clone(), id: id.clone(), payload, failure: None };
    let asked = engine.order(key.clone(), by, signal).await;
    let Signalled { already } = asked.map_err(|error| match named {
        Some(_) => status::from_engine(error),
        // Sent again it would be another request.
        None => status::from_engine_once(error, "give the request an id of your own"),
    })?;
    let mut answer =
        v1::AskWorkflowRunResponse { ask_id: id.to_string(), already_asked: already, ..Default::default() };
    match engine.wait_for_reply(&key, path, timeout).await.map_err(status::from_engine)? {
        Answered::Reply(reply) => {
            answer.answered = true;
            if *reply.content_type == *REJECTED {
                answer.rejected = Some(wire::failure(&read_rejection(&reply.data)));
            } else {
                answer.reply = Some(wire::payload(reply));
            }
        }
        Answered::NotYet => {}
        Answered::Ended(status) => {
            let message = format!(
                "run {run} ended as {} without an answer to request '{id}' on '{channel}'",
                status.name()
            );
            let refusal = Refusal::new(Reason::RunEndedUnanswered, message);
            return Err(refusal.with("run_id", run).with("status", status.name()).status());
        }
    }
    Ok(answer)
}

/// What the code said when it rejected the request. A worker of another language may have written it.
fn read_rejection(json: &[u8]) -> Failure {
    let said: serde_json::Value = serde_json::from_slice(json).unwrap_or_default();
    let word = |name: &str| said.get(name).and_then(|word| word.as_str());
    Failure::new(word("code").unwrap_or("REJECTED"), word("message").unwrap_or("the run said no"))
}
