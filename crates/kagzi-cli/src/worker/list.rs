use super::view::WorkerView;
use crate::output::{self, Format};
use crate::paging::{Foot, Paging};
use crate::session::Session;
use crate::{table, time_text};
use jiff::Timestamp;
use kagzi::admin::WorkerStatus;
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// Only workers of this queue.
    #[arg(long)]
    queue: Option<String>,
    /// Only workers with this status.
    #[arg(long, value_enum, ignore_case = true)]
    status: Option<Status>,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Status {
    Online,
    Draining,
    Offline,
}

#[derive(Serialize)]
struct Page {
    workers: Vec<WorkerView>,
    #[serde(flatten)]
    foot: Foot,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let workers = session.admin().await?.workers().task_queue(args.queue.unwrap_or_default());
    let workers = workers.page_size(args.paging.limit);
    let workers = if let Some(status) = args.status { workers.status(named(status)) } else { workers };
    let (workers, foot) = Foot::split(workers.page(args.paging.token()).await?, &args.paging);
    let page = Page { workers, foot };

    match session.format {
        Format::Json => output::print_json(&page),
        Format::Table if page.workers.is_empty() => {
            output::note("no workers");
            page.foot.note();
            Ok(())
        }
        Format::Table => {
            output::print(&as_table(&page.workers, time_text::now()))?;
            page.foot.note();
            Ok(())
        }
    }
}

fn named(status: Status) -> WorkerStatus {
    match status {
        Status::Online => WorkerStatus::Online,
        Status::Draining => WorkerStatus::Draining,
        Status::Offline => WorkerStatus::Offline,
    }
}

fn as_table(workers: &[WorkerView], now: Timestamp) -> String {
    let mut table = table::with_columns(&[
        "WORKER",
        "QUEUE",
        "STATUS",
        "ACTIVE",
        "COMPLETED",
        "FAILED",
        "HOST",
        "HEARTBEAT",
    ]);
    for worker in workers {
        table.add_row([
            worker.worker_id.as_str().into(),
            worker.task_queue.as_str().into(),
            table::mood_cell(worker.status, worker.mood),
            format!("{}/{}", worker.active_count, worker.max_concurrent).into(),
            worker.total_completed.to_string().into(),
            worker.total_failed.to_string().into(),
            format!("{}:{}", worker.hostname, worker.pid).into(),
            worker
                .last_heartbeat_at
                .map_or("-".into(), |at| time_text::absolute_and_relative(at, now))
                .into(),
        ]);
    }
    table::text(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::sample_now;
    use crate::worker::view::tests::sample_worker;

    #[test]
    fn workers_as_a_table() {
        insta::assert_snapshot!(as_table(&[sample_worker().into()], sample_now()));
    }
}
