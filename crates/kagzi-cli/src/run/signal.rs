//! `kagzi run signal`: tells a run something that its code waits for.

use serde::Serialize;

use super::find;
use crate::output::{self, Format};
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    /// A run id, a unique prefix of one, or a business id.
    id: String,
    /// The channel on which the run's code waits.
    channel: String,
    /// What it is told, as JSON; nothing = null.
    #[arg(default_value = "null", hide_default_value = true)]
    value: String,
    /// Your own name for this signal: sent twice, it counts once.
    #[arg(long = "signal-id", visible_alias = "id")]
    signal_id: Option<String>,
    /// Says that what the run waits for has failed, with this message.
    #[arg(long, conflicts_with = "value")]
    fail: Option<String>,
    /// The code of that failure.
    #[arg(long, requires = "fail", default_value = "REJECTED")]
    code: String,
}

#[derive(Serialize)]
struct Sent<'a> {
    run_id: &'a str,
    channel: &'a str,
    signal_id: &'a str,
    already_delivered: bool,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let value: serde_json::Value = serde_json::from_str(&args.value).map_err(|error| {
        anyhow::anyhow!(
            "the value is {:?}: it must be JSON ({error}); a text is written '\"so\"'",
            args.value
        )
    })?;
    let client = session.client().await?;
    let run = find::handle(&client, &args.id).await?;
    let mut signal = match args.fail {
        Some(message) => run.signal_failure(&args.channel, args.code, message),
        None => run.signal(&args.channel, &value),
    };
    if let Some(id) = args.signal_id {
        signal = signal.id(id);
    }
    let sent = signal.await?;
    let run_id = run.run_id();
    match session.format {
        Format::Json => output::print_json(&Sent {
            run_id,
            channel: &args.channel,
            signal_id: &sent.id,
            already_delivered: sent.already,
        })?,
        Format::Table if sent.already => {
            output::note(&format!("run {run_id} had signal {} before; nothing was written", sent.id));
        }
        Format::Table => output::note(&format!("run {run_id} was told on '{}'", args.channel)),
    }
    Ok(())
}
