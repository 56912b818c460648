use super::{find, status};
use crate::output::{self, Format};
use crate::session::Session;
use kagzi_proto::v1::CancelWorkflowRunRequest;
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,
    /// Why, for those who read the history.
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
}

#[derive(Serialize)]
struct Cancelled<'a> {
    run_id: &'a str,
    status: &'static str,
    already_cancelled: bool,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut workflows = session.workflows().await?;
    let run_id = find::run_id(&mut workflows, session, &args.id).await?;
    let request = CancelWorkflowRunRequest {
        run_id: run_id.clone(),
        namespace_id: session.namespace.clone(),
        reason: args.reason,
        ..Default::default()
    };
    let answer = workflows.cancel_workflow_run(request).await?.into_inner();

    let cancelled = Cancelled {
        run_id: &run_id,
        status: status::word(answer.status()),
        already_cancelled: answer.already_cancelled,
    };
    match session.format {
        Format::Json => output::print_json(&cancelled)?,
        Format::Table if cancelled.already_cancelled => {
            output::note(&format!("run {run_id} was cancelled before"));
        }
        Format::Table => output::note(&format!("run {run_id} is {}", cancelled.status)),
    }
    Ok(())
}
