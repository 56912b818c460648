use super::show;
use super::view::WorkerView;
use crate::output::{self, Format};
use crate::session::Session;
use anyhow::Context;
use kagzi_proto::v1::TakeWorkerOfflineRequest;

#[derive(clap::Args)]
pub struct Args {
    /// A worker id, or a unique prefix of one.
    id: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut workers = session.workers().await?;
    let worker_id = show::find(&mut workers, session, &args.id).await?.worker_id;
    let request = TakeWorkerOfflineRequest { worker_id, namespace_id: session.namespace.clone() };
    let answer = workers.take_worker_offline(request).await?.into_inner();

    let worker = WorkerView::from(answer.worker.context("the server answered without a worker")?);
    match session.format {
        Format::Json => output::print_json(&worker)?,
        Format::Table => output::note(&format!(
            "worker {} is {}; {} runs go to others",
            worker.worker_id, worker.status, answer.released
        )),
    }
    Ok(())
}
