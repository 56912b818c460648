use super::show;
use super::spec::{Behaviour, Timing};
use crate::output;
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    /// Your name for the schedule.
    id: String,
    /// The workflow type that it starts.
    #[arg(long = "type", value_name = "TYPE")]
    workflow_type: String,
    /// The queue whose workers may take the runs.
    #[arg(long, default_value = "default")]
    queue: String,
    #[command(flatten)]
    timing: Timing,
    #[command(flatten)]
    behaviour: Behaviour,
    /// Make it paused, with this note.
    #[arg(long, value_name = "NOTE")]
    paused: Option<String>,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let client = session.client().await?;
    let schedule = client.schedule(args.id, args.workflow_type, args.queue, ());
    let mut schedule = args.behaviour.apply(args.timing.apply(schedule))?;
    if let Some(note) = args.paused {
        schedule = schedule.paused(note);
    }
    let made = schedule.await?;
    if made.already_existed() {
        output::note("this schedule exists already, with the same plan");
    }
    show::print(made.describe().await?, session)
}
