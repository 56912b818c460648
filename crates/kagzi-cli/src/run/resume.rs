use super::{find, status};
use crate::output::{self, Format};
use crate::session::Session;
use kagzi_proto::v1::ResumeWorkflowRunRequest;
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,
}

#[derive(Serialize)]
struct Resumed<'a> {
    run_id: &'a str,
    status: &'static str,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut workflows = session.workflows().await?;
    let run_id = find::run_id(&mut workflows, session, &args.id).await?;
    let request = ResumeWorkflowRunRequest {
        run_id: run_id.clone(),
        namespace_id: session.namespace.clone(),
        request_id: uuid::Uuid::now_v7().to_string(),
        ..Default::default()
    };
    let answer = workflows.resume_workflow_run(request).await?.into_inner();

    let resumed = Resumed { run_id: &run_id, status: status::word(answer.status()) };
    match session.format {
        Format::Json => output::print_json(&resumed)?,
        Format::Table => output::note(&format!("run {run_id} goes on; it is {}", resumed.status)),
    }
    Ok(())
}
