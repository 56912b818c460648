//! WaitWorkflowRun: a long poll for the end of a run.

use std::{sync::Arc, time::Duration};

use kagzi_engine::Engine;
use kagzi_proto::v1;
use kagzi_store::RunView;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use crate::{
    check::{self, invalid},
    find,
    status::from_engine,
    wire,
};

pub async fn handle(
    engine: &Engine,
    request: v1::WaitWorkflowRunRequest,
) -> Result<v1::WaitWorkflowRunResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let id = find::run_exactly(engine, &namespace, &request.run_id, request.run.as_ref()).await?;
    let timeout = wait_time(engine, request.timeout_ms)?;
    let view = engine.wait(&namespace, id, timeout).await.map_err(from_engine)?;
    Ok(answer(view))
}

/// The same for a caller that may not take its results. A result is read only when there is room for the
/// largest one; it then keeps as much as it needs.
pub async fn handle_within(
    engine: &Engine,
    request: v1::WaitWorkflowRunRequest,
    room: Arc<Semaphore>,
    largest: u32,
) -> (Result<v1::WaitWorkflowRunResponse, Status>, Option<OwnedSemaphorePermit>) {
    let mut held = None;
    let answer = async {
        let namespace = check::namespace(&request.namespace_id)?;
        let id = find::run_exactly(engine, &namespace, &request.run_id, request.run.as_ref()).await?;
        let timeout = wait_time(engine, request.timeout_ms)?;
        let until = engine.clock().steady() + timeout;
        let told = engine.wait_for_end(&namespace, id, timeout).await.map_err(from_engine)?;
        let view = match told {
            Some(view) => view,
            None => {
                let mut permit = room.acquire_many_owned(largest).await.expect("it is never closed");
                let view = engine.read_until(&namespace, id, until).await.map_err(from_engine)?;
                let bytes =
                    [&view.input, &view.output].into_iter().flatten().map(|payload| payload.data.len());
                drop(permit.split((largest as usize).saturating_sub(bytes.sum())));
                held = Some(permit);
                view
            }
        };
        Ok(answer(view))
    };
    let answer = answer.await;
    (answer, held)
}

fn answer(view: RunView) -> v1::WaitWorkflowRunResponse {
    v1::WaitWorkflowRunResponse {
        finished: view.run.state.finished(),
        workflow_run: Some(Box::new(wire::run(view.run, view.input, view.output))),
    }
}

/// How long to wait: 0 = as long as the server allows.
pub fn wait_time(engine: &Engine, timeout_ms: i64) -> Result<Duration, Status> {
    match u64::try_from(timeout_ms) {
        Ok(0) => Ok(engine.settings().wait_max),
        Ok(ms) => Ok(Duration::from_millis(ms).min(engine.settings().wait_max)),
        Err(_) => Err(invalid("timeout_ms", timeout_ms, "it must not be negative")),
    }
}
