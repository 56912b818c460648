use super::view::WorkerView;
use crate::output::{self, Format};
use crate::session::Session;

#[derive(clap::Args)]
pub struct Args {
    /// A worker id, or a unique prefix of one.
    id: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let admin = session.admin().await?;
    let found = admin.worker(args.id.to_lowercase()).await?;
    let worker = WorkerView::from(admin.drain_worker(found.worker_id).await?);
    match session.format {
        Format::Json => output::print_json(&worker)?,
        Format::Table => output::note(&format!(
            "worker {} is {}, with {} runs still to finish",
            worker.worker_id, worker.status, worker.active_count
        )),
    }
    Ok(())
}
