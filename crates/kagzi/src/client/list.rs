//! Lists of runs, one page at a time.

use kagzi_proto::v1::{self, WorkflowRun, WorkflowStatus};

use crate::client::{Client, Repeat};
use crate::error::Error;

/// Which runs to list. What is empty does not filter.
#[derive(Debug, Clone, Default)]
pub struct ListRuns {
    /// Only runs in this state.
    pub status: Option<WorkflowStatus>,
    /// Only runs of this type.
    pub workflow_type: String,
    /// Only runs of this queue.
    pub task_queue: String,
    /// Only runs that failed, timed out or are retried with this error code.
    pub error_code: String,
    /// Only runs that wait for this: `ready`, `leased`, `timer`, `retry` or `paused`.
    pub reason: String,
    /// Only runs that this schedule started.
    pub schedule_id: String,
    /// Runs per page; 0 = the server's default.
    pub page_size: i32,
    /// From the page before; empty = the first page.
    pub page_token: String,
}

/// One page of runs, newest first.
#[derive(Debug, Clone, Default)]
pub struct RunPage {
    /// Without input and output.
    pub runs: Vec<WorkflowRun>,
    /// For the next page; empty when this is the last.
    pub next_page_token: String,
    /// For the page before; empty when this is the first.
    pub prev_page_token: String,
}

pub(crate) async fn list(client: &Client, which: ListRuns) -> Result<RunPage, Error> {
    let request = v1::ListWorkflowRunsRequest {
        namespace_id: client.namespace_id().to_owned(),
        page_size: which.page_size,
        page_token: which.page_token,
        status: which.status.unwrap_or_default().into(),
        workflow_type: which.workflow_type,
        task_queue: which.task_queue,
        error_code: which.error_code,
        reason: which.reason,
        schedule_id: which.schedule_id,
    };
    let mut page = client
        .call("list runs", Repeat::Safe, |mut rpc| {
            let request = request.clone();
            async move { rpc.list_workflow_runs(request).await }
        })
        .await?;
    for run in &mut page.workflow_runs {
        // One run whose key is not here must not hide the others.
        let mut decoded = run.clone();
        match client.codecs.decode_run(&mut decoded) {
            Ok(()) => *run = decoded,
            Err(error) => tracing::warn!(run = %run.run_id, %error, "a listed run stays encoded"),
        }
    }
    Ok(RunPage {
        runs: page.workflow_runs,
        next_page_token: page.next_page_token,
        prev_page_token: page.prev_page_token,
    })
}
