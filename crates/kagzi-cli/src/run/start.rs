use super::label;
use super::wait::print_ended;
use super::wait_loop::{self, Patience};
use crate::input;
use crate::output::{self, Format};
use crate::session::Session;
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
    /// Wait until the run has ended and print its output.
    #[arg(long)]
    wait: bool,
    /// Give up waiting after this long, e.g. 30s or 5m; the run goes on.
    #[arg(long, requires = "wait", value_name = "DURATION", value_parser = wait_loop::parse)]
    timeout: Option<Patience>,
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
    let started = labelled.await?;
    let run_id = started.run_id();
    if started.already_existed() {
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
