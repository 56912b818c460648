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
struct Terminated<'a> {
    run_id: &'a str,
    status: &'static str,
    already_terminated: bool,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let client = session.client().await?;
    let run = find::handle(&client, &args.id).await?;
    let stopped = run.terminate(args.reason).await?;
    let run_id = run.run_id();

    let terminated =
        Terminated { run_id, status: stopped.status.name(), already_terminated: stopped.already };
    match session.format {
        Format::Json => output::print_json(&terminated)?,
        Format::Table if terminated.already_terminated => {
            output::note(&format!("run {run_id} was terminated before"));
        }
        Format::Table => output::note(&format!("run {run_id} is {}", terminated.status)),
    }
    Ok(())
}
