use super::view::print;
use crate::session::{Session, user};
use kagzi_proto::v1::DisableNamespaceRequest;

#[derive(clap::Args)]
pub struct Args {
    /// The namespace.
    name: String,
    /// Why, for whoever is refused.
    #[arg(long, default_value = "")]
    note: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut admin = session.admin().await?;
    let request = DisableNamespaceRequest { namespace_id: args.name, note: args.note, by: user() };
    let answer = admin.disable_namespace(request).await?.into_inner();
    print(answer.namespace, session)
}
