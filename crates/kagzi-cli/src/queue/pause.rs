use super::gate_args::Which;
use super::view::GateView;
use crate::output::{self, Format};
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// Why, for whoever wonders.
    #[arg(long, default_value = "")]
    note: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let what = args.which.described();
    let gate = args.which.of(&session.admin().await?).pause(args.note).await?;
    match session.format {
        Format::Json => output::print_json(&GateView::from(gate))?,
        Format::Table => {
            output::note(&format!("{what} is paused: nothing new is claimed, what runs goes on"))
        }
    }
    Ok(())
}
