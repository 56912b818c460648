//! RetryWorkflowRun: a waiting retry begins at once, an ended run goes on from its failed step.

use kagzi_engine::Engine;
use kagzi_model::{Command, Reply};
use kagzi_proto::v1;
use tonic::Status;

use super::find_run;
use crate::{check, status::from_engine};

pub async fn handle(
    engine: &Engine,
    request: v1::RetryWorkflowRunRequest,
) -> Result<v1::RetryWorkflowRunResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let run = find_run::run(engine, &namespace, &request.run_id).await?;
    let row = engine.read_run(&namespace, run).await.map_err(from_engine)?.run;
    let from = match request.from_step.as_str() {
        "" => None,
        from => Some(check::step(from, 0)?.path),
    };
    let request = check::request_id(&request.request_id)?;
    // Should the run move between the look and the command, the command itself refuses.
    let command = if row.state.finished() {
        Command::Reopen { namespace, run, from, request }
    } else {
        Command::Resume { namespace, run, request }
    };
    match engine.apply_one(command).await.map_err(from_engine)? {
        Reply::Stands { status, .. } => Ok(v1::RetryWorkflowRunResponse { status: status as i32 }),
        other => Err(Status::internal(format!("a retry was answered with {other:?}"))),
    }
}
