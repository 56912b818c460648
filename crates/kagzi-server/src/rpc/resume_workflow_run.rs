//! ResumeWorkflowRun: a person says "go on now".

use kagzi_engine::Engine;
use kagzi_model::{Command, Reply};
use kagzi_proto::v1;
use tonic::Status;

use super::find_run;
use crate::{check, status::from_engine};

pub async fn handle(
    engine: &Engine,
    request: v1::ResumeWorkflowRunRequest,
) -> Result<v1::ResumeWorkflowRunResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let run = find_run::run(engine, &namespace, &request.run_id).await?;
    let request = check::request_id(&request.request_id)?;
    match engine.apply_one(Command::Resume { namespace, run, request }).await.map_err(from_engine)? {
        Reply::Stands { status, .. } => Ok(v1::ResumeWorkflowRunResponse { status: status as i32 }),
        other => Err(Status::internal(format!("a resume was answered with {other:?}"))),
    }
}
