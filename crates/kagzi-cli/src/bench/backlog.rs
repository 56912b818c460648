//! w3 on an empty store, and again beside runs that sleep in it.

use super::figures::{Backlog, Figures};
use super::measure;
use super::percentile::round;
use super::sleepers;
use super::stage::Stage;
use super::workload::{Load, now_ms};

/// Longer than any measurement.
const MONTH_MS: u64 = 30 * 24 * 3600 * 1000;

/// Started, but perhaps not yet asleep; they are waited for in portions, so that no measurement meets them.
const PORTION: u64 = 10_000;

pub async fn measure(stage: &mut Stage, load: &Load, backlog: u64) -> anyhow::Result<Figures> {
    let empty = measure::measure(stage, load).await?;
    let (client, queue) = (stage.clients[0].clone(), stage.queue.clone());
    let due_ms = now_ms() + MONTH_MS;
    let mut asleep = 0;
    while asleep < backlog {
        let portion = PORTION.min(backlog - asleep);
        let fill = async {
            let started = sleepers::start_all(&client, &queue, portion, due_ms).await?;
            // The last one started falls asleep about last; when it sleeps the worker is idle again.
            if let Some(last) = started.last() {
                while last.describe().await?.status() != kagzi::WorkflowStatus::Sleeping {
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                }
            }
            anyhow::Ok(())
        };
        stage.watch(fill).await?;
        asleep += portion;
    }
    let mut full = measure::measure(stage, load).await?;
    full.errors += empty.errors;
    full.backlog = Some(Backlog { backlog, empty_runs_per_s: round(empty.runs_per_s, 1) });
    Ok(full)
}
