//! `kagzi run ask`: asks a run's code something and prints its answer.

use serde::Serialize;
use serde_json::Value;

use super::find;
use super::wait_loop::{self, Patience};
use crate::input;
use crate::output::{self, Format};
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,
    /// The channel on which the run's code answers requests.
    channel: String,
    /// What is asked: JSON, @FILE, or - for stdin; nothing = null.
    #[arg(default_value = "null", hide_default_value = true)]
    value: String,
    /// Your own name for this request: asked twice, it is one request with one answer.
    #[arg(long)]
    ask_id: Option<String>,
    /// Give up waiting after this long, e.g. 30s or 5m; the request stays. Default: as long as it takes.
    #[arg(long, value_name = "DURATION", value_parser = wait_loop::parse)]
    timeout: Option<Patience>,
}

#[derive(Serialize)]
struct Answered<'a> {
    run_id: &'a str,
    channel: &'a str,
    reply: Value,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let value: Value = serde_json::from_slice(&input::read(&args.value)?)?;
    let client = session.client().await?;
    let run = find::handle(&client, &args.id).await?;
    let mut ask = run.ask::<_, Value>(&args.channel, &value);
    if let Some(id) = args.ask_id {
        ask = ask.id(id);
    }
    if let Some(timeout) = args.timeout {
        ask = ask.timeout(timeout);
    }
    let reply = ask.await?;
    match session.format {
        Format::Json => output::print_json(&Answered { run_id: run.run_id(), channel: &args.channel, reply }),
        Format::Table => output::print(&reply.to_string()),
    }
}
