//! GetWorkflowRun: one run with its payloads.

use kagzi_engine::Engine;
use kagzi_proto::{Reason, v1};
use tonic::Status;

use super::find_run;
use crate::{check, handler_input, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::GetWorkflowRunRequest,
) -> Result<v1::GetWorkflowRunResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let id = if request.run_id.is_empty() {
        let business_id = check::name("business_id", &request.business_id)?;
        let found = engine.store().run_by_business(&namespace, &business_id).await;
        found.map_err(|error| from_engine(error.into()))?.ok_or_else(|| {
            Reason::RunNotFound.status(format!(
                "no run has business id '{business_id}' in namespace '{namespace}'; list them with: \
                 kagzi --namespace {namespace} run list"
            ))
        })?
    } else {
        find_run::run(engine, &namespace, &request.run_id).await?
    };
    let view = engine.read_run(&namespace, id).await.map_err(from_engine)?;
    let input = match view.run.options.handler_of {
        Some(failed) => Some(handler_input::compose(engine, &namespace, failed).await?),
        None => view.input,
    };
    Ok(v1::GetWorkflowRunResponse { workflow_run: Some(wire::run(view.run, input, view.output)) })
}
