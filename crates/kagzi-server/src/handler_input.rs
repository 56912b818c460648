//! The input of a failure handler: composed from the failed run when it is needed, so nothing is stored
//! twice.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kagzi_engine::{Engine, EngineError};
use kagzi_model::{Name, Payload, Rejection, Run, RunId, codes, moment};
use kagzi_proto::{WORKFLOW_FAILED, v1};
use serde_json::json;
use tonic::Status;

use crate::status::from_engine;

/// The input to hand over: the run's own, or for a handler the story of the run that failed.
pub async fn of(engine: &Engine, run: &Run, input: Payload) -> Result<Payload, Status> {
    match run.options.handler_of {
        Some(failed) => compose(engine, &run.namespace, failed).await,
        None => Ok(input),
    }
}

/// What can be known of a failed run whose retention has passed: a handler that was reopened, restarted or
/// kept waiting must still be told which run it is for.
fn of_a_run_that_is_gone(namespace: &Name, failed: RunId) -> Payload {
    let event = json!({
        "failed_run_id": failed.to_string(),
        "namespace_id": &**namespace,
        "error": "the failed run is gone: its retention has passed, and nothing more is known of it",
        "error_code": codes::RUN_GONE,
    });
    Payload { data: event.to_string().into(), content_type: Name::from(WORKFLOW_FAILED) }
}

/// `WorkflowFailedEvent` as JSON, in protobuf's own mapping with the field names of the contract.
pub async fn compose(engine: &Engine, namespace: &Name, failed: RunId) -> Result<Payload, Status> {
    let view = match engine.read_run(namespace, failed).await {
        Ok(view) => view,
        Err(EngineError::Rejected(Rejection::NotFound { .. })) => {
            return Ok(of_a_run_that_is_gone(namespace, failed));
        }
        Err(error) => return Err(from_engine(error)),
    };
    let run = view.run;
    let (error, code) = match run.handled_failure() {
        Some(failure) => (failure.message, failure.code.to_string()),
        None => (run.state.status().name().to_owned(), String::new()),
    };
    let input = view.input.unwrap_or_else(|| Payload::new(""));
    let event = json!({
        "failed_run_id": run.id.to_string(),
        "namespace_id": &*run.namespace,
        "workflow_type": &*run.workflow_type,
        "task_queue": &*run.task_queue,
        "error": error,
        "original_input": STANDARD.encode(&input.data),
        "original_content_type": &*input.content_type,
        "attempts": run.attempts,
        "started_at": run.started_at.map(moment),
        "failed_at": run.finished_at.map(moment),
        "error_code": code,
        "status": v1::WorkflowStatus::try_from(run.state.status() as i32).unwrap_or_default().as_str_name(),
        "business_id": run.shown_id(),
    });
    Ok(Payload { data: event.to_string().into(), content_type: Name::from(WORKFLOW_FAILED) })
}

#[cfg(test)]
mod tests {
    use kagzi_engine::Settings;
    use uuid::Uuid;

    use super::*;
    use crate::{Server, StoreUrl};

    #[tokio::test]
    async fn a_handler_whose_failed_run_is_gone_is_told_what_can_be_known() {
        let server = Server::open(&StoreUrl::Memory, Settings::default()).await.unwrap();
        let failed = RunId(Uuid::from_u128(7));

        let input = compose(server.engine(), &Name::from("shop"), failed).await.unwrap();

        let event: serde_json::Value = serde_json::from_slice(&input.data).unwrap();
        assert_eq!(event["failed_run_id"], failed.to_string());
        assert_eq!((&event["namespace_id"], &event["error_code"]), (&"shop".into(), &"RUN_GONE".into()));
        assert!(event["error"].as_str().unwrap().contains("retention"));
        server.close().await;
    }
}
