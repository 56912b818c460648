//! `kagzi promise complete`: the code that waits for the promise goes on with this value.

use super::{Which, print};
use crate::input;
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// Its value: JSON or @FILE; nothing = null.
    #[arg(default_value = "null", hide_default_value = true)]
    value: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let value: serde_json::Value = serde_json::from_slice(&input::read(&args.value)?)?;
    let completed = args.which.find(session).await?.complete(&value).await?;
    print(&completed, "is completed", session)
}
