use super::find;
use crate::output::{self, Format};
use crate::session::Session;
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,
}

#[derive(Serialize)]
struct Resumed<'a> {
    run_id: &'a str,
    status: &'static str,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let client = session.client().await?;
    let run = find::handle(&client, &args.id).await?;
    let status = run.resume().await?;
    let run_id = run.run_id();

    let resumed = Resumed { run_id, status: status.name() };
    match session.format {
        Format::Json => output::print_json(&resumed)?,
        Format::Table => output::note(&format!("run {run_id} goes on; it is {}", resumed.status)),
    }
    Ok(())
}
