use super::show;
use super::spec::{Behaviour, Timing};
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    /// The schedule's id.
    id: String,
    /// Start runs of another workflow type.
    #[arg(long = "type", value_name = "TYPE")]
    workflow_type: Option<String>,
    /// Start them on another queue.
    #[arg(long)]
    queue: Option<String>,
    #[command(flatten)]
    timing: Timing,
    #[command(flatten)]
    behaviour: Behaviour,
    /// Label its runs no longer with this name; may be given again.
    #[arg(long = "unlabel", value_name = "NAME")]
    unlabel: Vec<String>,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let schedule = session.client().await?.schedule_handle(args.id);
    // Two people who edit at once do not overwrite each other.
    let mut edited = schedule.edit().await?;
    if let Some(name) = args.workflow_type {
        edited = edited.workflow_type(name);
    }
    if let Some(queue) = args.queue {
        edited = edited.queue(queue);
    }
    edited = args.timing.apply(edited);
    edited = args.unlabel.iter().fold(edited, |schedule, name| schedule.remove_label(name));
    let updated = args.behaviour.apply(edited)?.update().await?;
    show::print(updated.describe().await?, session)
}
