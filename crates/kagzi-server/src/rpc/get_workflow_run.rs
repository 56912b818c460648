//! GetWorkflowRun: one run with its payloads.

use kagzi_engine::Engine;
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, find, handler_input, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::GetWorkflowRunRequest,
) -> Result<v1::GetWorkflowRunResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let spelled_out = || {
        let business_id = request.run_id.is_empty().then_some(request.business_id)?;
        Some(v1::RunRef { r#ref: Some(v1::run_ref::Ref::BusinessId(business_id)) })
    };
    let named = request.run.or_else(spelled_out);
    let id = find::run(engine, &namespace, &request.run_id, named.as_ref()).await?;
    let view = engine.read_run(&namespace, id).await.map_err(from_engine)?;
    let input = match view.run.options.handler_of {
        Some(failed) => Some(handler_input::compose(engine, &namespace, failed).await?),
        None => view.input,
    };
    Ok(v1::GetWorkflowRunResponse { workflow_run: Some(wire::run(view.run, input, view.output)) })
}
