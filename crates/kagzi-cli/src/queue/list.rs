use super::view::{GateView, QueueView, queues_table};
use crate::output::{self, Format};
use crate::session::Session;
use crate::time_text;
use serde::Serialize;

#[derive(Serialize)]
struct Queues {
    queues: Vec<QueueView>,
    /// Stands before all of them.
    namespace_gate: Option<GateView>,
}

pub async fn perform(session: &Session) -> anyhow::Result<()> {
    let admin = session.admin().await?;
    let list = Queues {
        queues: admin.queues().all().await?.into_iter().map(QueueView::from).collect(),
        namespace_gate: GateView::unless_open(admin.namespace_gate().await?),
    };
    match session.format {
        Format::Json => output::print_json(&list),
        Format::Table if list.queues.is_empty() => {
            output::note("no queue has a living run, a worker or a gate");
            Ok(())
        }
        Format::Table => {
            output::print(&queues_table(&list.queues, time_text::now()))?;
            if let Some(gate) = list.namespace_gate {
                output::note(&format!("the whole namespace is {}", gate.sentence()));
            }
            Ok(())
        }
    }
}
