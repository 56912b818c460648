//! TerminateWorkflowRun: an operator gives a run up.

use kagzi_engine::Engine;
use kagzi_model::{Command, Reply};
use kagzi_proto::v1;
use tonic::Status;

use super::find_run;
use crate::{check, status::from_engine};

pub async fn handle(
    engine: &Engine,
    request: v1::TerminateWorkflowRunRequest,
) -> Result<v1::TerminateWorkflowRunResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let run = find_run::run(engine, &namespace, &request.run_id).await?;
    let reason = check::reason(&request.reason)?;
    match engine.apply_one(Command::Terminate { namespace, run, reason }).await.map_err(from_engine)? {
        Reply::Stands { status, already } => {
            Ok(v1::TerminateWorkflowRunResponse { status: status as i32, already_terminated: already })
        }
        other => Err(Status::internal(format!("a termination was answered with {other:?}"))),
    }
}
