use super::label;
use super::wait::print_ended;
use super::wait_loop::{self, Patience};
use crate::input;
use crate::output::{self, Format};
use crate::session::Session;
use kagzi::client::StartBuilder;
use serde::Serialize;
use serde_json::value::RawValue;

#[derive(clap::Args)]
pub struct Args {
    /// The workflow type, as a worker registers it.
    #[arg(value_name = "TYPE")]
    workflow_type: String,
    /// The input: JSON, @FILE, or - for stdin.
    #[arg(long, value_name = "JSON", default_value = "null", hide_default_value = true)]
    input: String,
    /// The queue whose workers may take the run.
    #[arg(long, default_value = "default")]
    queue: String,
    /// Your own id for the run; a second start with it answers with the first run.
    #[arg(long, value_name = "BUSINESS_ID")]
    id: Option<String>,
    /// For whom the run is; lists are filtered by it.
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// A label, for finding the run later; may be given again.
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label::parse)]
    labels: Vec<(String, String)>,
    /// Tells the run something with its start, as JSON; may be given again. With --id, a run that has the id
    /// already is told, whatever its input was.
    #[arg(long = "signal", value_name = "CHANNEL=JSON", value_parser = signal)]
    signals: Vec<(String, serde_json::Value)>,
    /// Wait until the run has ended and print its output.
    #[arg(long)]
    wait: bool,
    /// Give up waiting after this long, e.g. 30s or 5m; the run goes on.
    #[arg(long, requires = "wait", value_name = "DURATION", value_parser = wait_loop::parse)]
    timeout: Option<Patience>,
}

/// Reads `CHANNEL=JSON`.
fn signal(text: &str) -> Result<(String, serde_json::Value), String> {
    let (channel, value) = label::parse(text).map_err(|_| "write it as CHANNEL=JSON, e.g. item='\"tea\"'")?;
    match serde_json::from_str(&value) {
        Ok(value) => Ok((channel, value)),
        Err(error) => Err(format!("{value:?} is no JSON ({error}); a text is written '\"so\"'")),
    }
}

#[derive(Serialize)]
struct Started<'a> {
    run_id: &'a str,
    already_exists: bool,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let input = input::read(&args.input)?;
    let input: Box<RawValue> = serde_json::from_slice(&input)?;
    let start = session.client().await?.start(args.workflow_type).queue(args.queue).input(input);
    let start = start.id(args.id.unwrap_or_default()).user_id(args.user.unwrap_or_default());
    let labelled = args.labels.into_iter().fold(start, |start, (name, value)| start.label(name, value));
    let told = !args.signals.is_empty();
    let told_with = |start: StartBuilder, (channel, value): (String, _)| start.signal(channel, &value);
    let started = args.signals.into_iter().fold(labelled, told_with).await?;
    let run_id = started.run_id();
    if started.already_existed() && told {
        output::note(&format!("run {run_id} has this id already, and was told"));
    } else if started.already_existed() {
        output::note(&format!("run {run_id} has this id and input already"));
    }

    if args.wait {
        let ended = wait_loop::wait(&started, args.timeout).await?;
        return print_ended(ended, session.format);
    }
    match session.format {
        Format::Json => output::print_json(&Started { run_id, already_exists: started.already_existed() }),
        Format::Table => {
            output::print(run_id)?;
            output::note(&format!("follow it with: kagzi run wait {run_id}"));
            Ok(())
        }
    }
}
