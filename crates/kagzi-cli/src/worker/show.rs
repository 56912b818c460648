use super::view::WorkerView;
use crate::moment;
use crate::output::{self, Format};
use crate::session::{Session, Workers};
use anyhow::Context;
use kagzi_proto::v1::{GetWorkerRequest, Worker};

#[derive(clap::Args)]
pub struct Args {
    /// A worker id, or a unique prefix of one.
    id: String,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let mut workers = session.workers().await?;
    let worker = WorkerView::from(find(&mut workers, session, &args.id).await?);
    match session.format {
        Format::Json => output::print_json(&worker),
        Format::Table => output::print(&worker.fields(moment::now())),
    }
}

pub async fn find(workers: &mut Workers, session: &Session, id: &str) -> anyhow::Result<Worker> {
    let request = GetWorkerRequest { worker_id: id.to_lowercase(), namespace_id: session.namespace.clone() };
    let answer = workers.get_worker(request).await?.into_inner();
    answer.worker.context("the server answered without a worker")
}
