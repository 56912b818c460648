use super::view::GateView;
use super::which::{Which, described};
use crate::output::{self, Format};
use crate::session::{Session, user};
use kagzi_proto::v1::PauseQueueRequest;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// Why, for whoever wonders.
    #[arg(long, default_value = "")]
    note: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut admin = session.admin().await?;
    let (task_queue, workflow_type) = args.which.names();
    let what = described(&task_queue, &workflow_type);
    let namespace_id = session.namespace.clone();
    let request = PauseQueueRequest { namespace_id, task_queue, workflow_type, note: args.note, by: user() };
    let gate = admin.pause_queue(request).await?.into_inner().gate.unwrap_or_default();
    match session.format {
        Format::Json => output::print_json(&GateView::from(gate))?,
        Format::Table => {
            output::note(&format!("{what} is paused: nothing new is claimed, what runs goes on"))
        }
    }
    Ok(())
}
