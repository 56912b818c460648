use super::view::GateView;
use super::which::{Which, described};
use crate::output::{self, Format};
use crate::session::Session;
use kagzi_proto::v1::LimitQueueRequest;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// Most runs at once.
    #[arg(long, value_name = "N", required_unless_present = "none")]
    max: Option<u32>,
    /// No limit any more.
    #[arg(long, conflicts_with = "max")]
    none: bool,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut admin = session.admin().await?;
    let (task_queue, workflow_type) = args.which.names();
    let what = described(&task_queue, &workflow_type);
    let namespace_id = session.namespace.clone();
    let request = LimitQueueRequest { namespace_id, task_queue, workflow_type, max_concurrent: args.max };
    let gate = admin.limit_queue(request).await?.into_inner().gate.unwrap_or_default();
    match (session.format, gate.max_concurrent) {
        (Format::Json, _) => output::print_json(&GateView::from(gate))?,
        (Format::Table, Some(most)) => output::note(&format!("{what} runs at most {most} at once")),
        (Format::Table, None) => output::note(&format!("{what} has no limit")),
    }
    Ok(())
}
