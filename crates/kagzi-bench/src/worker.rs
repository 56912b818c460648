//! The worker that a benchmark starts: a process, or a task of this one.

use crate::workload::{
    COLLECTOR, Collected, Collection, Family, GO, Heard, ITEM, Input, Output, PARENT, POLLER, Rounds,
    SIGNALLED, SLEEPER, Shape, Sleep, Slept, WORKFLOW_TYPE, now_ms, now_us,
};
use anyhow::{Context, ensure};
use kagzi::worker::WorkerBuilder;
use kagzi::{Worker, WorkflowContext};
use kagzi_shell::address::Address;
use kagzi_shell::{output, stop};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

#[derive(clap::Args)]
pub struct Args {
    /// The benchmark's own queue.
    #[arg(long)]
    queue: String,
    #[arg(long)]
    max_concurrent: u32,
    /// Workers in this one process, each with a session of its own and so many slots.
    #[arg(long, default_value_t = 1)]
    workers: u32,
    /// Says so and waits for its end when it gets to this step of a run.
    #[arg(long)]
    hold_at: Option<u32>,
}

/// Said on stdout by a worker that holds.
pub const HOLDING: &str = "holding at step ";

pub async fn perform(args: Args, server: &Address) -> anyhow::Result<()> {
    let parent_left = CancellationToken::new();
    stop::when_stdin_closes(parent_left.clone());
    let address = server.to_string();
    let mut workers = JoinSet::new();
    for _ in 0..args.workers {
        let builder =
            Worker::builder(address.as_str(), args.queue.as_str()).max_concurrent(args.max_concurrent);
        let worker = build_holding(builder, args.hold_at).await?;
        workers.spawn(worker.run());
    }
    tokio::select! {
        // The first that ends, ends the measurement.
        ended = workers.join_next() => Ok(ended.context("there is at least one worker")???),
        // Without its parent the measurement is over.
        () = parent_left.cancelled() => Ok(()),
    }
}

/// A worker that knows every workload.
pub async fn build(builder: WorkerBuilder) -> anyhow::Result<Worker> {
    build_holding(builder, None).await
}

async fn build_holding(builder: WorkerBuilder, hold_at: Option<u32>) -> anyhow::Result<Worker> {
    let mut worker = builder.build().await?;
    worker.register(WORKFLOW_TYPE, move |ctx, input| bench(ctx, input, hold_at));
    worker.register(SLEEPER, sleep);
    worker.register(POLLER, poll);
    worker.register(SIGNALLED, listen);
    worker.register(PARENT, raise);
    worker.register(COLLECTOR, collect);
    Ok(worker)
}

/// As many steps as the input asks for, one after the other.
async fn bench(ctx: WorkflowContext, input: Input, hold_at: Option<u32>) -> anyhow::Result<Output> {
    if input.steps == 0 {
        return Ok(Output::Input(input));
    }
    let mut results = Vec::with_capacity(input.steps as usize);
    for step in 0..input.steps {
        let code = async {
            if hold_at == Some(step) {
                output::print(&format!("{HOLDING}{step}"))?;
                std::future::pending::<()>().await;
            }
            Ok(input.step_result(step))
        };
        results.push(ctx.run("step", code).await?);
    }
    Ok(Output::Steps(results))
}

async fn sleep(ctx: WorkflowContext, sleep: Sleep) -> anyhow::Result<Slept> {
    let asleep_ms = ctx.run("fall asleep", async { Ok(now_ms()) }).await?;
    ctx.sleep(Duration::from_millis(sleep.due_ms.saturating_sub(asleep_ms))).await?;
    Ok(Slept { asleep_ms, woke_ms: now_ms() })
}

/// One claim for each round: while it sleeps nobody holds it.
async fn poll(ctx: WorkflowContext, rounds: Rounds) -> anyhow::Result<u32> {
    for round in 0..rounds.rounds {
        ctx.run("look", async move { Ok(round) }).await?;
        ctx.sleep(Duration::from_millis(rounds.pause_ms)).await?;
    }
    Ok(rounds.rounds)
}

/// Waits for the one signal that it is told.
async fn listen(ctx: WorkflowContext, _: ()) -> anyhow::Result<Heard> {
    let said = ctx.signal(GO).await?;
    Ok(Heard { said, heard_us: now_us() })
}

/// Takes signal after signal.
async fn collect(ctx: WorkflowContext, collection: Collection) -> anyhow::Result<Collected> {
    let signals = ctx.signals::<u64>(ITEM);
    let mut different = BTreeSet::new();
    for _ in 0..collection.signals {
        different.extend(signals.next().await?);
    }
    Ok(Collected { different: different.len() as u64 })
}

/// Starts all children side by side and waits for the last of them.
async fn raise(ctx: WorkflowContext, family: Family) -> anyhow::Result<u64> {
    let inputs = || (0..family.children).map(|n| Input::new(Shape::of_steps("child", 0), n));
    let outputs: Vec<anyhow::Result<Output>> = ctx.children(WORKFLOW_TYPE, inputs()).await;
    for (output, input) in outputs.into_iter().zip(inputs()) {
        ensure!(output? == input.expected_output(), "child {} returned a wrong result", input.n);
    }
    Ok(family.children)
}
