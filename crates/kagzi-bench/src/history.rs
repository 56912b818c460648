//! One run with a long history whose worker is killed near its end: how long until the next one goes on?

use crate::figures::{Figures, LatencyMs};
use crate::percentile::round;
use crate::stage::{Hands, Post, Stage};
use crate::worker::HOLDING;
use crate::workload::{Input, Load, Output, Shape, WORKFLOW_TYPE};
use anyhow::{Context, ensure};
use kagzi::client::RunHandle;
use kagzi::history::Event;
use std::time::{Duration, SystemTime};

pub async fn measure(stage: &mut Stage, load: &Load, steps: u32) -> anyhow::Result<Figures> {
    let hold_at = steps - steps.div_ceil(20);
    // One that stops where we want it.
    replace_worker(stage, &["--hold-at", &hold_at.to_string()]).await?;
    let input = Input::new(Shape::of_steps("history", steps), 0);
    let client = stage.clients[0].clone();
    let run = client.workflow(WORKFLOW_TYPE, stage.queue.as_str(), &input).await?;
    let Some(Hands::Process(worker)) = stage.workers.first_mut() else { unreachable!("it was just started") };
    worker.says(HOLDING).await?;
    replace_worker(stage, &[]).await?;

    let output: Output = stage.watch(async { Ok(run.result().await?) }).await?;
    let seconds = resumed_within(&run).await?.as_secs_f64();
    Ok(Figures {
        workload: load.shape.name,
        store: stage.store,
        mode: stage.mode,
        runs: 1,
        concurrency: 1,
        seconds: round(seconds, 3),
        runs_per_s: round(1.0 / seconds.max(0.001), 3),
        steps_per_s: round(f64::from(hold_at) / seconds.max(0.001), 1),
        latency_ms: LatencyMs { p50: Some(round(seconds * 1e3, 3)), p99: None },
        server_rss_mb: stage.server_rss_mb(),
        worker_rss_mb: stage.worker_rss_mb(),
        written_bytes_per_run: None,
        errors: u64::from(output != input.expected_output()),
        more: None,
    })
}

async fn replace_worker(stage: &mut Stage, more: &[&str]) -> anyhow::Result<()> {
    stage.kill_workers().await?;
    let queue = stage.queue.clone();
    stage.start_worker(Post { at: 0, queue: &queue, slots: 1 }, more).await
}

/// From the moment that the second worker was given the run until the first step that was not recorded is,
/// both by the server's clock: sending and replaying the history is all that lies between.
async fn resumed_within(run: &RunHandle) -> anyhow::Result<Duration> {
    let events = run.events().await?;
    let claim = last_claim(&events)?;
    let recorded = events.iter().filter(|event| event.kind == "step_completed");
    let next = recorded.filter(|event| event.sequence > claim.sequence).min_by_key(|event| event.sequence);
    let (claimed, next) = (at(claim)?, at(next.context("no step was recorded after it")?)?);
    Ok(next.duration_since(claimed).unwrap_or_default())
}

/// The one of a run that was taken over.
pub fn last_claim(events: &[Event]) -> anyhow::Result<&Event> {
    let claims: Vec<&Event> = events.iter().filter(|event| event.kind == "run_claimed").collect();
    ensure!(claims.len() >= 2, "the run was not taken over");
    Ok(claims[claims.len() - 1])
}

pub fn at(event: &Event) -> anyhow::Result<SystemTime> {
    Ok(event.at)
}
