use super::view::{GateView, QueueView, queues_table};
use super::watch;
use crate::output::{self, Format};
use crate::paging::{Foot, Paging};
use crate::session::Session;
use crate::time_text;
use serde::Serialize;

#[derive(clap::Args)]
pub struct Args {
    /// Go on showing queues as they change, until you stop it; at most 1000 are looked at.
    #[arg(long, conflicts_with_all = ["page_token", "total"])]
    watch: bool,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Serialize)]
struct Queues {
    queues: Vec<QueueView>,
    /// Stands before all of them.
    namespace_gate: Option<GateView>,
    #[serde(flatten)]
    foot: Foot,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let admin = session.admin().await?;
    if args.watch {
        return watch::queues(admin.queues(), session.format).await;
    }
    let page = admin.queues().page_size(args.paging.limit).page(args.paging.token()).await?;
    let (queues, foot) = Foot::split(page, &args.paging);
    let namespace_gate = GateView::unless_open(admin.namespace_gate().await?);
    let list = Queues { queues, namespace_gate, foot };
    match session.format {
        Format::Json => output::print_json(&list),
        Format::Table if list.queues.is_empty() => {
            output::note("no queue has a living run, a worker or a gate");
            list.foot.note();
            Ok(())
        }
        Format::Table => {
            output::print(&queues_table(&list.queues, time_text::now()))?;
            if let Some(gate) = list.namespace_gate {
                output::note(&format!("the whole namespace is {}", gate.sentence()));
            }
            list.foot.note();
            Ok(())
        }
    }
}
