//! `kagzi run approve`: approves of what a run waits for.

use serde::Serialize;

use super::find;
use crate::output::{self, Format};
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,
    /// What is approved of: `kagzi run why` names it.
    subject: String,
    /// Who approves.
    #[arg(long, default_value = "somebody")]
    by: String,
}

#[derive(Serialize)]
struct Approved<'a> {
    run_id: &'a str,
    subject: &'a str,
    already_approved: bool,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let client = session.client().await?;
    let run = find::handle(&client, &args.id).await?;
    let sent = run.approve(&args.subject, &args.by).await?;
    let (run_id, subject) = (run.run_id(), args.subject.as_str());
    match session.format {
        Format::Json => output::print_json(&Approved { run_id, subject, already_approved: sent.already })?,
        Format::Table if sent.already => output::note("it was approved before; nothing was written"),
        Format::Table => output::note(&format!("run {run_id} may go on with '{subject}'")),
    }
    Ok(())
}
