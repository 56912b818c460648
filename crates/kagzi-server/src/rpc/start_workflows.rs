//! StartWorkflows: many starts in one call, each on its own.

use kagzi_engine::Engine;
use kagzi_model::Name;
use kagzi_proto::v1;
use tonic::Status;

use super::start_workflow;
use crate::{check::invalid, services::limits, status::from_engine};

/// Most starts in one call.
const STARTS_MAX: usize = 1_000;

pub async fn handle(
    engine: &Engine,
    request: v1::StartWorkflowsRequest,
    trace: Option<Name>,
) -> Result<v1::StartWorkflowsResponse, Status> {
    let count = request.requests.len();
    if count > STARTS_MAX {
        return Err(invalid("requests", count, format_args!("at most {STARTS_MAX} starts fit in one call")));
    }
    let read = |request| {
        let mut start = start_workflow::read(engine, limits(engine), request)?;
        start.options.trace = trace.clone();
        Ok(start)
    };
    let reads: Vec<_> = request.requests.into_iter().map(read).collect();
    let good: Vec<_> = reads.iter().filter_map(|read| read.as_ref().ok().cloned()).collect();
    let mut outcomes = engine.start_runs(good).await.map_err(from_engine)?.into_iter();
    let results = reads.into_iter().map(|read| {
        let answer = read
            .and_then(|_| start_workflow::answer(outcomes.next().expect("every good start has one outcome")));
        match answer {
            Ok(started) => v1::StartResult {
                run_id: started.run_id,
                already_exists: started.already_exists,
                ..v1::StartResult::default()
            },
            Err(status) => v1::StartResult {
                error: status.message().to_owned(),
                error_code: status.code() as i32,
                ..v1::StartResult::default()
            },
        }
    });
    Ok(v1::StartWorkflowsResponse { results: results.collect() })
}
