use super::show;
use crate::session::Session;
use kagzi::schedule::Missed;

#[derive(clap::Args)]
pub struct Args {
    /// The schedule's id.
    id: String,
    /// Also start what was missed meanwhile, the newest up to the schedule's limit.
    #[arg(long)]
    catch_up: bool,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let missed = if args.catch_up { Missed::CatchUp } else { Missed::Skip };
    let schedule = session.client().await?.schedule_handle(args.id).resume(missed).await?;
    show::print(schedule, session)
}
