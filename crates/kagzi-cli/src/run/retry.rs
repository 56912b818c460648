use super::{find, status};
use crate::output::{self, Format};
use crate::session::Session;
use kagzi_proto::v1::RetryWorkflowRunRequest;
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,

    /// Go on from this failed step instead of the one that failed the run. Nothing but failures may have been
    /// recorded after it.
    #[arg(long, value_name = "STEP", default_value = "", hide_default_value = true)]
    from: String,
}

#[derive(Serialize)]
struct Retried<'a> {
    run_id: &'a str,
    status: &'static str,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut workflows = session.workflows().await?;
    let run_id = find::run_id(&mut workflows, session, &args.id).await?;
    let request = RetryWorkflowRunRequest {
        run_id: run_id.clone(),
        namespace_id: session.namespace.clone(),
        from_step: args.from,
        request_id: uuid::Uuid::now_v7().to_string(),
        ..Default::default()
    };
    let answer = workflows.retry_workflow_run(request).await?.into_inner();

    let retried = Retried { run_id: &run_id, status: status::word(answer.status()) };
    match session.format {
        Format::Json => output::print_json(&retried)?,
        Format::Table => {
            output::note(&format!("run {run_id} goes on from its failed step; it is {}", retried.status));
        }
    }
    Ok(())
}
