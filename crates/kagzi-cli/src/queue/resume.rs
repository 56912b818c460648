use super::view::GateView;
use super::which::{Which, described};
use crate::output::{self, Format};
use crate::session::Session;
use kagzi_proto::v1::ResumeQueueRequest;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut admin = session.admin().await?;
    let (task_queue, workflow_type) = args.which.names();
    let what = described(&task_queue, &workflow_type);
    let request = ResumeQueueRequest { namespace_id: session.namespace.clone(), task_queue, workflow_type };
    let gate = admin.resume_queue(request).await?.into_inner().gate.unwrap_or_default();
    match session.format {
        Format::Json => output::print_json(&GateView::from(gate))?,
        Format::Table => output::note(&format!("{what} goes on")),
    }
    Ok(())
}
