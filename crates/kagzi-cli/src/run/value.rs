//! `kagzi run value`: what a run has published under a name.

use serde::Serialize;
use serde_json::Value;

use super::find;
use crate::exit::Trouble;
use crate::output::{self, Format};
use crate::session::Session;
use crate::time_text;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,
    /// The name under which the run's code publishes it.
    name: String,
}

#[derive(Serialize)]
struct Shown<'a> {
    run_id: &'a str,
    name: &'a str,
    value: Value,
    set_at: Option<String>,
    status: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let client = session.client().await?;
    let run = find::handle(&client, &args.id).await?;
    let (run_id, name) = (run.run_id(), args.name.as_str());
    let Some(published) = run.value::<Value>(name).await? else {
        return Err(Trouble::NotFound(format!("run {run_id} has published no value '{name}'")).into());
    };
    let set_at = time_text::of(Some(published.set_at));
    let status = published.status.to_string();
    match session.format {
        Format::Json => {
            let set_at = set_at.map(|at| at.to_string());
            output::print_json(&Shown { run_id, name, value: published.value, set_at, status })
        }
        Format::Table => {
            output::print(&published.value.to_string())?;
            if let Some(at) = set_at {
                let when = time_text::absolute_and_relative(at, time_text::now());
                output::note(&format!("set at {when}; the run is {status}"));
            }
            Ok(())
        }
    }
}
