use super::view::print;
use crate::session::Session;
use kagzi_proto::v1::EnableNamespaceRequest;

#[derive(clap::Args)]
pub struct Args {
    /// The namespace.
    name: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut admin = session.admin().await?;
    let answer =
        admin.enable_namespace(EnableNamespaceRequest { namespace_id: args.name }).await?.into_inner();
    print(answer.namespace, session)
}
