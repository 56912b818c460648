use super::find;
use crate::output::{self, Format};
use crate::session::Session;
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,

    /// Go on from this failed step instead of the one that failed the run. Nothing but failures may have been
    /// recorded after it.
    #[arg(long, value_name = "STEP", default_value = "", hide_default_value = true)]
    from: String,
}

#[derive(Serialize)]
struct Retried<'a> {
    run_id: &'a str,
    status: &'static str,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let client = session.client().await?;
    let run = find::handle(&client, &args.id).await?;
    let status = run.retry_from(&args.from).await?;
    let run_id = run.run_id();

    let retried = Retried { run_id, status: status.name() };
    match session.format {
        Format::Json => output::print_json(&retried)?,
        Format::Table => {
            output::note(&format!("run {run_id} goes on from its failed step; it is {}", retried.status));
        }
    }
    Ok(())
}
