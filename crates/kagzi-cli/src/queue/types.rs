use super::view::{QueueView, TypeView};
use crate::output::{self, Format};
use crate::session::Session;
use crate::table;
use serde::Serialize;

/// A workflow type as somebody has seen it: a living run, a worker that registers it now or did lately, or a
/// gate.
#[derive(Debug, Serialize)]
struct SeenType {
    task_queue: String,
    #[serde(flatten)]
    seen: TypeView,
}

pub async fn perform(session: &Session) -> anyhow::Result<()> {
    let answer = session.admin().await?.queues().all().await?;
    let types: Vec<SeenType> = answer.into_iter().map(QueueView::from).flat_map(of_queue).collect();
    match session.format {
        Format::Json => output::print_json(&types),
        Format::Table if types.is_empty() => {
            output::note("no workflow type has a living run, a worker or a gate");
            Ok(())
        }
        Format::Table => output::print(&as_table(&types)),
    }
}

fn of_queue(queue: QueueView) -> impl Iterator<Item = SeenType> {
    let task_queue = queue.task_queue;
    queue.types.into_iter().map(move |seen| SeenType { task_queue: task_queue.clone(), seen })
}

fn as_table(types: &[SeenType]) -> String {
    let mut table = table::with_columns(&["TYPE", "QUEUE", "WORKERS", "READY", "WAITING", "RUNNING"]);
    for SeenType { task_queue, seen } in types {
        table.add_row([
            seen.workflow_type.clone(),
            task_queue.clone(),
            seen.workers.to_string(),
            seen.ready.to_string(),
            seen.waiting.to_string(),
            seen.leased.to_string(),
        ]);
    }
    table::text(table)
}
