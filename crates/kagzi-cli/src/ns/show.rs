use super::view::print;
use crate::session::Session;
use kagzi_proto::v1::GetNamespaceRequest;

#[derive(clap::Args)]
pub struct Args {
    /// The namespace; the one of --namespace when not named.
    name: Option<String>,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut admin = session.admin().await?;
    let namespace_id = args.name.unwrap_or_else(|| session.namespace.clone());
    let answer = admin.get_namespace(GetNamespaceRequest { namespace_id }).await?.into_inner();
    print(answer.namespace, session)
}
