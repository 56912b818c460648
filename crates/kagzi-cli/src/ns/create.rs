use super::values::Values;
use super::view::print;
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    /// The new name.
    name: String,
    #[command(flatten)]
    values: Values,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let namespace = session.admin().await?.create_namespace(args.name, args.values.settings()?).await?;
    print(namespace, session)
}
