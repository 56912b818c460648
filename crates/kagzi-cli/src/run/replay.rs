//! Bulk replay: after a bug is mended, the runs that it failed go on or begin again, at a rate of your
//! choice.

use super::status;
use crate::exit::Trouble;
use crate::output::{self, Format};
use crate::session::{Session, Workflows};
use kagzi_proto::v1::{
    ListWorkflowRunsRequest, RestartWorkflowRunRequest, RetryWorkflowRunRequest, WorkflowStatus,
};
use kagzi_shell::progress;
use serde::Serialize;
use std::time::Duration;

#[derive(clap::Args)]
pub struct Args {
    /// Which ended runs: failed, timed-out or cancelled.
    #[arg(long, default_value = "failed", value_parser = status::parse)]
    status: WorkflowStatus,
    /// Only runs of this workflow type.
    #[arg(long = "type", value_name = "TYPE", default_value = "", hide_default_value = true)]
    workflow_type: String,
    /// Only runs on this queue.
    #[arg(long, default_value = "", hide_default_value = true)]
    queue: String,
    /// Only runs that ended with this error code.
    #[arg(long, value_name = "CODE", default_value = "", hide_default_value = true)]
    error_code: String,
    /// `retry` goes on from the failed step, `restart` begins a new run with the same input.
    #[arg(long, value_enum, default_value_t = How::Retry)]
    how: How,
    /// Runs per second.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// At most this many.
    #[arg(long, default_value_t = 100_000)]
    limit: usize,
    /// Only count them.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum How {
    Retry,
    Restart,
}

#[derive(Serialize)]
struct Replayed {
    matching: usize,
    replayed: usize,
    refused: usize,
    dry_run: bool,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let ended = [WorkflowStatus::Failed, WorkflowStatus::TimedOut, WorkflowStatus::Cancelled];
    if !ended.contains(&args.status) {
        return Err(Trouble::usage("only failed, timed-out or cancelled runs can be replayed"));
    }
    let mut workflows = session.workflows().await?;
    // All are found before the first is replayed, so that none is met twice.
    let ids = matching(&mut workflows, session, &args).await?;
    let mut done = Replayed { matching: ids.len(), replayed: 0, refused: 0, dry_run: args.dry_run };
    if !args.dry_run {
        replay(&mut workflows, session, &args, &ids, &mut done).await?;
    }
    match session.format {
        Format::Json => output::print_json(&done)?,
        Format::Table if done.dry_run => {
            output::note(&format!("{} runs match; without --dry-run they would be replayed", done.matching));
        }
        Format::Table => output::note(&format!(
            "{} of {} runs replayed, {} refused because they had moved on",
            done.replayed, done.matching, done.refused
        )),
    }
    Ok(())
}

async fn matching(workflows: &mut Workflows, session: &Session, args: &Args) -> anyhow::Result<Vec<String>> {
    let mut ids = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = ListWorkflowRunsRequest {
            namespace_id: session.namespace.clone(),
            page_size: 1000,
            page_token,
            status: args.status.into(),
            workflow_type: args.workflow_type.clone(),
            task_queue: args.queue.clone(),
            error_code: args.error_code.clone(),
            ..ListWorkflowRunsRequest::default()
        };
        let page = workflows.list_workflow_runs(request).await?.into_inner();
        ids.extend(page.workflow_runs.into_iter().map(|run| run.run_id));
        ids.truncate(args.limit);
        if !page.has_more || ids.len() == args.limit {
            return Ok(ids);
        }
        page_token = page.next_page_token;
    }
}

async fn replay(
    workflows: &mut Workflows,
    session: &Session,
    args: &Args,
    ids: &[String],
    done: &mut Replayed,
) -> anyhow::Result<()> {
    let bar = progress::bar("replaying", ids.len() as u64);
    let mut pace = tokio::time::interval(Duration::from_secs(1) / args.rate);
    for id in ids {
        pace.tick().await;
        let (run_id, namespace_id) = (id.clone(), session.namespace.clone());
        let answer = match args.how {
            How::Retry => workflows
                .retry_workflow_run(RetryWorkflowRunRequest {
                    run_id,
                    namespace_id,
                    request_id: uuid::Uuid::now_v7().to_string(),
                    ..Default::default()
                })
                .await
                .map(|_| ()),
            How::Restart => {
                let business_id = String::new();
                let request =
                    RestartWorkflowRunRequest { run_id, namespace_id, business_id, ..Default::default() };
                workflows.restart_workflow_run(request).await.map(|_| ())
            }
        };
        match answer {
            Ok(()) => done.replayed += 1,
            Err(status) if status.code() == tonic::Code::FailedPrecondition => done.refused += 1,
            Err(status) => return Err(status.into()),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}
