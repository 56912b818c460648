use super::values::Values;
use super::view::print;
use crate::session::Session;
use kagzi::admin::NamespaceField;

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
    let values = args.values.settings()?;
    let settings = args.clear.into_iter().fold(values, |settings, field| settings.clear(named(field)));
    print(session.admin().await?.update_namespace(args.name, settings).await?, session)
}

fn named(field: Field) -> NamespaceField {
    match field {
        Field::RetryPolicy => NamespaceField::RetryPolicy,
        Field::Timeouts => NamespaceField::Timeouts,
        Field::Retention => NamespaceField::Retention,
        Field::MaxConcurrent => NamespaceField::MaxConcurrent,
        Field::FailureHandlerQueue => NamespaceField::FailureHandlerQueue,
    }
}
