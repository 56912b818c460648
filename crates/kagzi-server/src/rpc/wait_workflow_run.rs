//! WaitWorkflowRun: a long poll for the end of a run.

use std::time::Duration;

use kagzi_engine::Engine;
use kagzi_proto::v1;
use tonic::Status;

use crate::{
    check::{self, invalid},
    status::from_engine,
    wire,
};

pub async fn handle(
    engine: &Engine,
    request: v1::WaitWorkflowRunRequest,
) -> Result<v1::WaitWorkflowRunResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let id = check::run_id("run_id", &request.run_id)?;
    let timeout = wait_time(engine, request.timeout_ms)?;
    let view = engine.wait(&namespace, id, timeout).await.map_err(from_engine)?;
    Ok(v1::WaitWorkflowRunResponse {
        finished: view.run.state.finished(),
        workflow_run: Some(Box::new(wire::run(view.run, view.input, view.output))),
    })
}

/// How long to wait: 0 = as long as the server allows.
pub fn wait_time(engine: &Engine, timeout_ms: i64) -> Result<Duration, Status> {
    match u64::try_from(timeout_ms) {
        Ok(0) => Ok(engine.settings().wait_max),
        Ok(ms) => Ok(Duration::from_millis(ms).min(engine.settings().wait_max)),
        Err(_) => Err(invalid("timeout_ms", timeout_ms, "it must not be negative")),
    }
}
