use super::view::WorkerView;
use crate::output::{self, Format};
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
    /// How many to list.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Go on where an earlier list ended.
    #[arg(long, value_name = "TOKEN")]
    page_token: Option<String>,
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
    next_page_token: Option<String>,
    prev_page_token: Option<String>,
    total_count: u64,
    /// There are more than were counted.
    total_capped: bool,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let workers = session.admin().await?.workers().task_queue(args.queue.unwrap_or_default());
    let workers = workers.page_size(args.limit);
    let workers = if let Some(status) = args.status { workers.status(named(status)) } else { workers };
    let answer = workers.page(args.page_token.unwrap_or_default()).await?;
    let page = Page {
        workers: answer.rows.into_iter().map(WorkerView::from).collect(),
        next_page_token: answer.next,
        prev_page_token: answer.previous,
        total_count: answer.total.map_or(0, |total| total.count),
        total_capped: answer.total.is_some_and(|total| total.capped),
    };

    match session.format {
        Format::Json => output::print_json(&page),
        Format::Table if page.workers.is_empty() => {
            output::note("no workers");
            Ok(())
        }
        Format::Table => {
            output::print(&as_table(&page.workers, time_text::now()))?;
            output::note_pages(page.next_page_token.as_deref(), page.prev_page_token.as_deref());
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
