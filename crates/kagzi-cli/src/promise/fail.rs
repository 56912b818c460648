//! `kagzi promise fail`: the wait for the promise ends with this error.

use super::{Which, print};
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// What went wrong, for people.
    message: String,
    /// For programs.
    #[arg(long, default_value = "REJECTED")]
    code: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let failed = args.which.find(session).await?.fail(args.code, args.message).await?;
    print(&failed, "has failed", session)
}
