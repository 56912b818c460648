use super::view::print;
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    /// The namespace.
    name: String,
    /// Why, for whoever is refused.
    #[arg(long, default_value = "")]
    note: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let namespace = session.admin().await?.disable_namespace(args.name, args.note).await?;
    print(namespace, session)
}
