use super::find;
use crate::output::{self, Format};
use crate::session::Session;
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,
    /// Why, for those who read the history.
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
}

#[derive(Serialize)]
struct Cancelled<'a> {
    run_id: &'a str,
    status: &'static str,
    already_cancelled: bool,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let client = session.client().await?;
    let run = find::handle(&client, &args.id).await?;
    let stopped = run.cancel(args.reason).await?;
    let run_id = run.run_id();

    let cancelled = Cancelled { run_id, status: stopped.status.name(), already_cancelled: stopped.already };
    match session.format {
        Format::Json => output::print_json(&cancelled)?,
        Format::Table if cancelled.already_cancelled => {
            output::note(&format!("run {run_id} was cancelled before"));
        }
        Format::Table => output::note(&format!("run {run_id} is {}", cancelled.status)),
    }
    Ok(())
}
