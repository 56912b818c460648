//! `kagzi promise beat`: a sign of life from whoever works on a promise.

use serde::Serialize;

use super::Which;
use crate::output::{self, Format};
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
}

#[derive(Serialize)]
struct Beaten {
    alive: bool,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    args.which.find(session).await?.beat().await?;
    match session.format {
        Format::Json => output::print_json(&Beaten { alive: true }),
        Format::Table => {
            output::note("the promise knows that somebody works on it");
            Ok(())
        }
    }
}
