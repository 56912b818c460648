use super::show;
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    /// The schedule's id.
    id: String,
    /// Why, for the others.
    #[arg(long, default_value = "", hide_default_value = true)]
    note: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let schedule = session.client().await?.schedule_handle(args.id).pause(args.note).await?;
    show::print(schedule, session)
}
