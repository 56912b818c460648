//! `kagzi inbox cancel`: the question is taken back.

use kagzi::inbox::Inbox;

use super::{find, view::print};
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    /// The question: its id, or the beginning of one that is open.
    id: String,
    /// Why; its run is told.
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
}

pub async fn perform(args: Args, inbox: &Inbox, session: &Session) -> anyhow::Result<()> {
    let id = find(inbox, &args.id).await?;
    print(inbox.cancel(id, args.reason).await?, "is taken back", session)
}
