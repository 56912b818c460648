use super::{find, status};
use crate::output::{self, Format};
use crate::session::Session;
use kagzi_proto::v1::TerminateWorkflowRunRequest;
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
struct Terminated<'a> {
    run_id: &'a str,
    status: &'static str,
    already_terminated: bool,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut workflows = session.workflows().await?;
    let run_id = find::run_id(&mut workflows, session, &args.id).await?;
    let request = TerminateWorkflowRunRequest {
        run_id: run_id.clone(),
        namespace_id: session.namespace.clone(),
        reason: args.reason,
        ..Default::default()
    };
    let answer = workflows.terminate_workflow_run(request).await?.into_inner();

    let terminated = Terminated {
        run_id: &run_id,
        status: status::word(answer.status()),
        already_terminated: answer.already_terminated,
    };
    match session.format {
        Format::Json => output::print_json(&terminated)?,
        Format::Table if terminated.already_terminated => {
            output::note(&format!("run {run_id} was terminated before"));
        }
        Format::Table => output::note(&format!("run {run_id} is {}", terminated.status)),
    }
    Ok(())
}
