//! ExplainWorkflowRun: why does it not move?

use kagzi_engine::Engine;
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, find, status::from_engine};

pub async fn handle(
    engine: &Engine,
    request: v1::ExplainWorkflowRunRequest,
) -> Result<v1::ExplainWorkflowRunResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let run = find::run(engine, &namespace, &request.run_id, request.run.as_ref()).await?;
    let explanation = engine.explain(&namespace, run).await.map_err(from_engine)?;
    Ok(v1::ExplainWorkflowRunResponse {
        sentence: explanation.sentence,
        reason: v1::WaitReason::from_word(explanation.reason).unwrap_or_default().into(),
    })
}
