//! StartWorkflows: many starts in one call, each on its own.

use kagzi_engine::Engine;
use kagzi_model::Name;
use kagzi_proto::{refusal, v1};
use tonic::Status;

use super::start_workflow;
use crate::{check::invalid, services::limits};

/// Most starts in one call, and in one commit of a conversation.
pub const STARTS_MAX: usize = 1_000;

pub async fn handle(
    engine: &Engine,
    request: v1::StartWorkflowsRequest,
    trace: Option<Name>,
) -> Result<v1::StartWorkflowsResponse, Status> {
    let count = request.requests.len();
    if count > STARTS_MAX {
        return Err(invalid("requests", count, format_args!("at most {STARTS_MAX} starts fit in one call")));
    }
    let starts = request.requests.into_iter().map(|start| (Box::new(start), trace.clone())).collect();
    let results = start_each(engine, starts).await?.into_iter().map(|answer| match answer {
        Ok(started) => v1::StartResult {
            run_id: started.run_id,
            already_exists: started.already_exists,
            ..v1::StartResult::default()
        },
        Err(status) => {
            v1::StartResult { refused: Some(refusal::to_rpc(&status)), ..v1::StartResult::default() }
        }
    });
    Ok(v1::StartWorkflowsResponse { results: results.collect() })
}

/// Starts each on its own and in its trace, all in one commit; what is wrong with one does not stop the
/// others.
pub async fn start_each(
    engine: &Engine,
    requests: Vec<(Box<v1::StartWorkflowRequest>, Option<Name>)>,
) -> Result<Vec<Result<v1::StartWorkflowResponse, Status>>, Status> {
    let mut good = Vec::with_capacity(requests.len());
    let mut refused = Vec::with_capacity(requests.len());
    for (request, trace) in requests {
        match start_workflow::read(engine, limits(engine), *request) {
            Ok(mut start) => {
                start.options.trace = trace;
                good.push(start);
                refused.push(None);
            }
            Err(status) => refused.push(Some(status)),
        }
    }
    let repeatable = good.iter().all(start_workflow::repeatable);
    let outcomes = engine.start_runs(good).await;
    let mut outcomes = outcomes.map_err(|error| start_workflow::unstarted(error, repeatable))?.into_iter();
    let answer = |refused: Option<Status>| match refused {
        Some(status) => Err(status),
        None => start_workflow::answer(outcomes.next().expect("every good start has one outcome")),
    };
    Ok(refused.into_iter().map(answer).collect())
}
