use super::gate_args::Which;
use super::view::GateView;
use crate::output::{self, Format};
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// Most runs at once.
    #[arg(long, value_name = "N", required_unless_present = "none")]
    max: Option<u32>,
    /// No limit any more.
    #[arg(long, conflicts_with = "max")]
    none: bool,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let what = args.which.described();
    let queue = args.which.of(&session.admin().await?);
    let gate = match args.max {
        Some(most) => queue.limit(most).await?,
        None => queue.unlimited().await?,
    };
    match (session.format, gate.max_concurrent) {
        (Format::Json, _) => output::print_json(&GateView::from(gate))?,
        (Format::Table, Some(most)) => output::note(&format!("{what} runs at most {most} at once")),
        (Format::Table, None) => output::note(&format!("{what} has no limit")),
    }
    Ok(())
}
