//! `kagzi inbox assign`: other people are asked instead.

use kagzi::inbox::Inbox;

use super::{find, view::print};
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    /// The question: its id, or the beginning of one that is open.
    id: String,
    /// Who is asked from now on: people, and groups as group:NAME.
    #[arg(required = true)]
    to: Vec<String>,
}

pub async fn perform(args: Args, inbox: &Inbox, session: &Session) -> anyhow::Result<()> {
    let id = find(inbox, &args.id).await?;
    let to: Vec<&str> = args.to.iter().map(String::as_str).collect();
    print(inbox.assign(id, &to).await?, &format!("is assigned to {}", args.to.join(", ")), session)
}
