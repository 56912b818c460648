//! ListStepAttempts: what a run's steps did, oldest first, with those that run now.

use kagzi_engine::Engine;
use kagzi_model::{Name, RunId};
use kagzi_proto::v1;
use kagzi_store::{AttemptState, StepAttempt, attempts};
use tonic::Status;

use super::find_run;
use crate::{
    check::{self, invalid},
    status::from_engine,
    wire,
};

/// Events of one run that are read to build the list.
const EVENTS_MAX: usize = 300_000;

pub async fn handle(
    engine: &Engine,
    request: v1::ListStepAttemptsRequest,
) -> Result<v1::ListStepAttemptsResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let run = find_run::run(engine, &namespace, &request.run_id).await?;
    let limit = check::page_size(request.page_size, 1_000, 5_000)?;
    let wrong = |_| invalid("page_token", &request.page_token, "it is not a token of this server");
    let from: usize =
        if request.page_token.is_empty() { 0 } else { request.page_token.parse().map_err(wrong)? };
    let mut list = of_run(engine, &namespace, run).await?;
    if !request.step_id.is_empty() {
        list.retain(|attempt| *attempt.path == *request.step_id);
    }
    let has_more = list.len() > from.saturating_add(limit);
    let page = list.into_iter().skip(from).take(limit);
    Ok(v1::ListStepAttemptsResponse {
        step_attempts: page.map(|attempt| wire::step_attempt(run, attempt)).collect(),
        next_page_token: if has_more { (from + limit).to_string() } else { String::new() },
    })
}

/// Every attempt: the recorded ones, then those that a worker says it runs now.
pub async fn of_run(engine: &Engine, namespace: &Name, run: RunId) -> Result<Vec<StepAttempt>, Status> {
    let row = engine.read_run(namespace, run).await.map_err(from_engine)?.run;
    let events = engine.store().events(namespace, run, 0, EVENTS_MAX).await;
    let mut list = attempts(&events.map_err(|error| from_engine(error.into()))?);
    let Some(lease) = row.lease() else { return Ok(list) };
    for step in engine.running_steps(run, row.epoch) {
        let told = |known: &StepAttempt| known.path == step.path && known.attempt >= step.attempt;
        if list.iter().any(told) {
            continue;
        }
        list.iter_mut().filter(|known| known.path == step.path).for_each(|known| known.latest = false);
        list.push(StepAttempt {
            path: step.path,
            position: step.position,
            attempt: step.attempt,
            worker: Some(lease.worker),
            started_at: Some(step.since),
            finished_at: None,
            state: AttemptState::Running,
            latest: true,
        });
    }
    Ok(list)
}
