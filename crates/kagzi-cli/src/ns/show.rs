use super::view::print;
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    /// The namespace; the one of --namespace when not named.
    name: Option<String>,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let name = args.name.unwrap_or_else(|| session.namespace.clone());
    print(session.admin().await?.namespace(name).await?, session)
}
