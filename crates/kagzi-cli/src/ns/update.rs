use super::values::Values;
use super::view::print;
use crate::session::Session;
use kagzi_proto::v1::UpdateNamespaceRequest;

#[derive(clap::Args)]
pub struct Args {
    /// The namespace to change.
    name: String,
    #[command(flatten)]
    values: Values,
    /// Leave a field to the server again; may be repeated.
    #[arg(long, value_name = "FIELD", value_enum)]
    clear: Vec<Field>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Field {
    RetryPolicy,
    Timeouts,
    Retention,
    MaxConcurrent,
    FailureHandlerQueue,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut admin = session.admin().await?;
    let request = UpdateNamespaceRequest {
        namespace_id: args.name,
        values: Some(args.values.into()),
        clear: args.clear.into_iter().map(word).map(str::to_owned).collect(),
    };
    let answer = admin.update_namespace(request).await?.into_inner();
    print(answer.namespace, session)
}

fn word(field: Field) -> &'static str {
    match field {
        Field::RetryPolicy => "retry_policy",
        Field::Timeouts => "timeouts",
        Field::Retention => "retention",
        Field::MaxConcurrent => "max_concurrent",
        Field::FailureHandlerQueue => "failure_handler_queue",
    }
}
