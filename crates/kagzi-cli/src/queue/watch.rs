//! `kagzi queue list --watch` and `kagzi queue show --watch`: queues as they change.

use std::pin::pin;

use futures_util::TryStreamExt;
use kagzi::admin::Queues;
use serde::Serialize;

use super::view::{GateView, QueueView, queues_table};
use crate::output::{self, Format};
use crate::time_text;

#[derive(Serialize)]
struct News {
    queues: Vec<QueueView>,
    gone: Vec<String>,
    namespace_gate: Option<GateView>,
}

pub async fn queues(wanted: Queues, format: Format) -> anyhow::Result<()> {
    let mut changes = pin!(wanted.watch());
    while let Some((changes, gate)) = changes.try_next().await? {
        let news = News {
            queues: changes.changed.into_iter().map(QueueView::from).collect(),
            gone: changes.gone,
            namespace_gate: GateView::unless_open(gate),
        };
        match format {
            Format::Json => output::print_json_line(&news)?,
            Format::Table => print(&news)?,
        }
    }
    Ok(())
}

fn print(news: &News) -> anyhow::Result<()> {
    if !news.queues.is_empty() {
        output::print(&queues_table(&news.queues, time_text::now()))?;
    }
    for queue in &news.gone {
        output::print(&format!("{queue} has nothing any more"))?;
    }
    if let Some(gate) = &news.namespace_gate {
        output::note(&format!("the whole namespace is {}", gate.sentence()));
    }
    Ok(())
}
