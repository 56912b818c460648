//! `kagzi inbox snooze`: hidden from your inbox for some time.

use std::time::Duration;

use kagzi::inbox::Inbox;

use super::{find, view::print};
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    /// The question: its id, or the beginning of one that is open.
    id: String,
    /// For how long: 30m, 2h.
    length: jiff::SignedDuration,
}

pub async fn perform(args: Args, inbox: &Inbox, session: &Session) -> anyhow::Result<()> {
    let id = find(inbox, &args.id).await?;
    let length = Duration::try_from(args.length)?;
    print(inbox.snooze(id, length).await?, "is hidden from your inbox for now", session)
}
