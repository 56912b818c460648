use super::status;
use super::view::{RunView, some_text};
use crate::output::{self, Format};
use crate::session::Session;
use crate::{moment, table};
use jiff::Timestamp;
use kagzi_proto::v1::{ListWorkflowRunsRequest, ListWorkflowRunsResponse, WorkflowStatus};
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// Only runs with this status, e.g. running.
    #[arg(long, value_parser = status::parse)]
    status: Option<WorkflowStatus>,
    /// Only runs of this workflow type.
    #[arg(long = "type", value_name = "TYPE")]
    workflow_type: Option<String>,
    /// Only runs on this queue.
    #[arg(long)]
    queue: Option<String>,
    /// Only runs that failed, or wait to retry, with this error code.
    #[arg(long, value_name = "CODE")]
    error_code: Option<String>,
    /// Only runs with this reason to wake: ready, leased, timer, retry or paused.
    #[arg(long)]
    reason: Option<String>,
    /// Only runs that this schedule started.
    #[arg(long, value_name = "SCHEDULE")]
    schedule: Option<String>,
    /// How many to list.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i32).range(1..=1000))]
    limit: i32,
    /// Go on where an earlier list ended.
    #[arg(long, value_name = "TOKEN")]
    page_token: Option<String>,
}

#[derive(Serialize)]
struct Page {
    runs: Vec<RunView>,
    next_page_token: Option<String>,
    prev_page_token: Option<String>,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let request = ListWorkflowRunsRequest {
        namespace_id: session.namespace.clone(),
        page_size: args.limit,
        page_token: args.page_token.unwrap_or_default(),
        status: args.status.unwrap_or(WorkflowStatus::Unspecified).into(),
        workflow_type: args.workflow_type.unwrap_or_default(),
        task_queue: args.queue.unwrap_or_default(),
        error_code: args.error_code.unwrap_or_default(),
        reason: args.reason.unwrap_or_default(),
        schedule_id: args.schedule.unwrap_or_default(),
    };
    let mut workflows = session.workflows().await?;
    let page = Page::from(workflows.list_workflow_runs(request).await?.into_inner());

    match session.format {
        Format::Json => output::print_json(&page),
        Format::Table if page.runs.is_empty() => {
            output::note("no runs");
            Ok(())
        }
        Format::Table => {
            output::print(&as_table(&page.runs, moment::now()))?;
            if let Some(token) = page.next_page_token {
                output::note(&format!("more with: --page-token {token}"));
            }
            Ok(())
        }
    }
}

impl From<ListWorkflowRunsResponse> for Page {
    fn from(answer: ListWorkflowRunsResponse) -> Self {
        Page {
            runs: answer.workflow_runs.into_iter().map(RunView::from).collect(),
            next_page_token: some_text(answer.next_page_token).filter(|_| answer.has_more),
            prev_page_token: some_text(answer.prev_page_token),
        }
    }
}

fn as_table(runs: &[RunView], now: Timestamp) -> String {
    // Whole ids: the first characters of a UUIDv7 are a time, so a shortened one would rarely be unique.
    let mut table =
        table::with_columns(&["RUN", "TYPE", "QUEUE", "STATUS", "REASON", "BUSINESS ID", "CREATED"]);
    for run in runs {
        table.add_row([
            run.run_id.as_str().into(),
            run.workflow_type.as_str().into(),
            run.task_queue.as_str().into(),
            table::mood_cell(run.status, run.mood),
            run.reason.as_deref().unwrap_or("-").into(),
            run.business_id.as_str().into(),
            run.created_at.map_or("-".into(), |at| moment::absolute_and_relative(at, now)).into(),
        ]);
    }
    table::text(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::view::tests::{sample_now, sample_run};

    #[test]
    fn a_list_as_a_table() {
        insta::assert_snapshot!(as_table(&[sample_run().into()], sample_now()));
    }

    #[test]
    fn a_list_as_json() {
        let mut run = sample_run();
        run.input = None;
        let answer = ListWorkflowRunsResponse {
            workflow_runs: vec![run],
            next_page_token: "b2xkZXI".into(),
            has_more: true,
            ..ListWorkflowRunsResponse::default()
        };

        insta::assert_snapshot!(output::json(&Page::from(answer)));
    }
}
