use super::view::WorkerView;
use crate::output::{self, Format};
use crate::session::Session;
use crate::time_text;

#[derive(clap::Args)]
pub struct Args {
    /// A worker id, or a unique prefix of one.
    id: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let worker = WorkerView::from(session.admin().await?.worker(args.id.to_lowercase()).await?);
    match session.format {
        Format::Json => output::print_json(&worker),
        Format::Table => output::print(&worker.fields(time_text::now())),
    }
}
