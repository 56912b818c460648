//! The worker that a benchmark starts: a process, or a task of this one.

use crate::workload::{
    Family, Input, Output, PARENT, POLLER, Rounds, SLEEPER, Shape, Sleep, Slept, WORKFLOW_TYPE, now_ms,
};
use anyhow::{Context, ensure};
use kagzi::worker::WorkerBuilder;
use kagzi::{Client, Worker, WorkflowContext};
use kagzi_shell::address::Address;
use kagzi_shell::{output, stop};
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
    let client = Client::connect(address.as_str()).await?;
    let mut workers = JoinSet::new();
    for _ in 0..args.workers {
        let builder =
            Worker::builder(address.as_str(), args.queue.as_str()).max_concurrent(args.max_concurrent);
        let worker = build_holding(builder, client.clone(), args.hold_at).await?;
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
pub async fn build(builder: WorkerBuilder, client: Client) -> anyhow::Result<Worker> {
    build_holding(builder, client, None).await
}

async fn build_holding(
    builder: WorkerBuilder,
    client: Client,
    hold_at: Option<u32>,
) -> anyhow::Result<Worker> {
    let mut worker = builder.build().await?;
    worker.register(WORKFLOW_TYPE, move |ctx, input| bench(ctx, input, hold_at));
    worker.register(SLEEPER, sleep);
    worker.register(POLLER, poll);
    worker.register(PARENT, move |ctx, family| raise(ctx, family, client.clone()));
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

/// Two steps: one starts all children, the other awaits them. Their ids follow from the step's key, so a
/// repeated step finds the children that it has.
async fn raise(ctx: WorkflowContext, family: Family, client: Client) -> anyhow::Result<u64> {
    let shape = Shape::of_steps("child", 0);
    let (starter, awaiter) = (client.clone(), client);
    let children = family.children;
    let ids: Vec<String> = ctx
        .step("start")
        .run(|step| {
            let (client, queue, key) = (starter.clone(), family.queue.clone(), step.idempotency_key());
            async move {
                let start = |n| {
                    let input = Input::new(shape, n);
                    client.workflow(WORKFLOW_TYPE, queue.as_str(), input).id(format!("{key}/{n}"))
                };
                let started = client.start_many((0..children).map(start).collect()).await;
                let ids = started.into_iter().map(|run| run.map(|run| run.run_id().to_owned()));
                Ok(ids.collect::<Result<Vec<_>, _>>()?)
            }
        })
        .await?;
    ctx.step("await")
        .run(|_| {
            let (client, ids) = (awaiter.clone(), ids.clone());
            async move {
                for (id, n) in ids.iter().zip(0..) {
                    let output: Output = client.handle(id).result().await?;
                    ensure!(
                        output == Output::Input(Input::new(shape, n)),
                        "child {n} returned a wrong result"
                    );
                }
                Ok(ids.len() as u64)
            }
        })
        .await
}
