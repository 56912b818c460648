//! WatchRuns: the newest runs that match, as they change.

use kagzi_engine::Engine;
use kagzi_proto::v1;
use tonic::Status;

use super::list_workflow_runs;
use crate::{
    check::{self, invalid},
    services::Services,
    watch::{self, Changes, Look, Outgoing, Told, Watch},
};

/// Runs that one watch looks at.
const RUNS_MAX: usize = 200;

pub fn open(
    services: &Services,
    request: v1::WatchRunsRequest,
) -> Result<Outgoing<v1::WatchRunsResponse>, Status> {
    let mut filter = request.filter.unwrap_or_default();
    let wanted = check::count("filter.page_size", filter.page_size, 50, RUNS_MAX)?;
    if !filter.page_token.is_empty() {
        return Err(invalid(
            "filter.page_token",
            &filter.page_token,
            "a watch begins with the newest; leave it out",
        ));
    }
    filter.page_size = i32::try_from(wanted).expect("a small number");
    let engine = services.engine.clone();
    watch::open(services, Runs { engine, filter, told: Told::default() })
}

struct Runs {
    engine: Engine,
    filter: v1::ListWorkflowRunsRequest,
    told: Told,
}

impl Watch for Runs {
    type News = v1::WatchRunsResponse;

    async fn look(&mut self) -> Result<Look<v1::WatchRunsResponse>, Status> {
        let found = list_workflow_runs::handle(&self.engine, self.filter.clone()).await?;
        Ok(match self.told.changes(found.workflow_runs, |run| &run.run_id) {
            Some(Changes { changed, gone }) => {
                Look::News(v1::WatchRunsResponse { workflow_runs: changed, gone })
            }
            None => Look::Nothing,
        })
    }
}
