use super::find;
use crate::output::{self, Format};
use crate::session::Session;
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,
    /// The business id of the new run.
    #[arg(long = "id", value_name = "BUSINESS_ID", default_value = "", hide_default_value = true)]
    business_id: String,
}

#[derive(Serialize)]
struct Restarted<'a> {
    run_id: &'a str,
    restart_of: &'a str,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let client = session.client().await?;
    let run = find::handle(&client, &args.id).await?;
    let restarted = run.restart_as(args.business_id).await?;
    let (run_id, former) = (restarted.run_id(), run.run_id());

    match session.format {
        Format::Json => output::print_json(&Restarted { run_id, restart_of: former })?,
        Format::Table => output::print(run_id)?,
    }
    Ok(())
}
