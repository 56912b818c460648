//! Many runs in flight on a worker that is killed: how long until each is with another one?

use crate::figures::{Figures, LatencyMs, More, Recovery};
use crate::history::{at, last_claim};
use crate::percentile::{percentile_ms, round};
use crate::stage::{Hands, Post, Stage};
use crate::worker::HOLDING;
use crate::workload::{Input, Load, Output, WORKFLOW_TYPE};
use anyhow::Context;
use kagzi::client::RunHandle;
use kagzi_shell::progress;
use std::time::{Duration, SystemTime};

/// The step that the victim never ends; the one before it is recorded.
const HELD_STEP: u32 = 1;

pub async fn measure(stage: &mut Stage, load: &Load) -> anyhow::Result<Figures> {
    let slots = u32::try_from(load.runs).context("so many runs do not fit on one worker")?;
    let queue = stage.queue.clone();
    let post = || Post { at: 0, queue: &queue, slots };
    stage.start_worker(post(), &["--hold-at", &HELD_STEP.to_string()]).await?;
    let inputs: Vec<Input> = (0..load.runs).map(|n| Input::new(load.shape, n)).collect();
    let client = stage.clients[0].clone();
    let starts = inputs.iter().map(|input| client.workflow(WORKFLOW_TYPE, queue.as_str(), input));
    let runs: Vec<RunHandle> =
        client.start_many(starts.collect()).await.into_iter().collect::<Result<_, _>>()?;
    let Some(Hands::Process(mut victim)) = stage.workers.pop() else { unreachable!("it was just started") };
    victim.says_often(HOLDING, load.runs).await?;
    // The victim is full: whatever else there is goes to the one that stands by.
    stage.start_worker(post(), &[]).await?;
    let probe = Input::new(load.shape, load.runs);
    let probe: RunHandle = client.workflow(WORKFLOW_TYPE, queue.as_str(), &probe).await?;
    stage.watch(async { Ok(probe.result::<Output>().await?) }).await?;

    let killed_at = SystemTime::now();
    victim.kill().await?;
    let bar = progress::bar("recovering", load.runs);
    let mut errors = 0;
    for (run, input) in runs.iter().zip(&inputs) {
        let output: Output = stage.watch(async { Ok(run.result().await?) }).await?;
        errors += u64::from(output != input.expected_output());
        bar.inc(1);
    }
    let finished = killed_at.elapsed().unwrap_or_default();
    bar.finish_and_clear();
    let mut recovered = Vec::with_capacity(runs.len());
    for run in &runs {
        let events = run.events().await?;
        recovered.push(at(last_claim(&events)?)?.duration_since(killed_at).unwrap_or_default());
    }
    recovered.sort_unstable();
    Ok(figures(stage, load, Found { recovered, finished, errors }))
}

struct Found {
    /// How long after the kill each run was given to another worker, in order.
    recovered: Vec<Duration>,
    finished: Duration,
    errors: u64,
}

fn figures(stage: &Stage, load: &Load, found: Found) -> Figures {
    let seconds = |duration: Option<&Duration>| round(duration.map_or(0.0, Duration::as_secs_f64), 3);
    let recovered_all_s = seconds(found.recovered.last());
    Figures {
        workload: load.shape.name,
        store: stage.store,
        mode: stage.mode,
        runs: load.runs,
        concurrency: load.runs.try_into().unwrap_or(u32::MAX),
        seconds: recovered_all_s,
        runs_per_s: round(load.runs as f64 / recovered_all_s.max(0.001), 1),
        steps_per_s: 0.0,
        latency_ms: LatencyMs {
            p50: percentile_ms(&found.recovered, 50.0),
            p99: percentile_ms(&found.recovered, 99.0),
        },
        server_rss_mb: stage.server_rss_mb(),
        worker_rss_mb: stage.worker_rss_mb(),
        written_bytes_per_run: None,
        errors: found.errors,
        more: Some(More::Recovery(Recovery {
            recovered_first_s: seconds(found.recovered.first()),
            recovered_all_s,
            finished_all_s: seconds(Some(&found.finished)),
        })),
    }
}
