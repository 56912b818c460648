use super::values::Values;
use super::view::print;
use crate::session::Session;
use kagzi_proto::v1::CreateNamespaceRequest;

#[derive(clap::Args)]
pub struct Args {
    /// The new name.
    name: String,
    #[command(flatten)]
    values: Values,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut admin = session.admin().await?;
    let request = CreateNamespaceRequest { namespace_id: args.name, values: Some(args.values.into()) };
    let answer = admin.create_namespace(request).await?.into_inner();
    print(answer.namespace, session)
}
