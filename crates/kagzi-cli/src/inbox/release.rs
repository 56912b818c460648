//! `kagzi inbox release`.

use kagzi::inbox::Inbox;

use super::{find, view::print};
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    /// The question: its id, or the beginning of one that is open.
    id: String,
}

pub async fn perform(args: Args, inbox: &Inbox, session: &Session) -> anyhow::Result<()> {
    let id = find(inbox, &args.id).await?;
    print(inbox.release(id).await?, "is nobody's again", session)
}
