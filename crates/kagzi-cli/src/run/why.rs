use super::find;
use crate::output::{self, Format};
use crate::session::Session;
use kagzi_proto::v1::ExplainWorkflowRunRequest;
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,
}

#[derive(Serialize)]
struct Why {
    run_id: String,
    reason: String,
    sentence: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut workflows = session.workflows().await?;
    let run_id = find::run_id(&mut workflows, session, &args.id).await?;
    let request =
        ExplainWorkflowRunRequest { run_id: run_id.clone(), namespace_id: session.namespace.clone() };
    let answer = workflows.explain_workflow_run(request).await?.into_inner();

    match session.format {
        Format::Json => output::print_json(&Why { run_id, reason: answer.reason, sentence: answer.sentence }),
        Format::Table => output::print(&answer.sentence),
    }
}
