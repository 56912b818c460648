use super::view::print;
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    /// The namespace.
    name: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    print(session.admin().await?.enable_namespace(args.name).await?, session)
}
