use super::find;
use crate::output::{self, Format};
use crate::session::Session;
use kagzi_proto::v1::RestartWorkflowRunRequest;
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,
    /// The business id of the new run.
    #[arg(long = "id", value_name = "BUSINESS_ID", default_value = "", hide_default_value = true)]
    business_id: String,
}

#[derive(Serialize)]
struct Restarted<'a> {
    run_id: &'a str,
    restart_of: &'a str,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut workflows = session.workflows().await?;
    let former = find::run_id(&mut workflows, session, &args.id).await?;
    let request = RestartWorkflowRunRequest {
        run_id: former.clone(),
        namespace_id: session.namespace.clone(),
        business_id: args.business_id,
        ..Default::default()
    };
    let run_id = workflows.restart_workflow_run(request).await?.into_inner().run_id;

    match session.format {
        Format::Json => output::print_json(&Restarted { run_id: &run_id, restart_of: &former })?,
        Format::Table => output::print(&run_id)?,
    }
    Ok(())
}
