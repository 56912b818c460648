//! The worker of the fault tests: it follows scripts and logs every real execution.

use std::{path::PathBuf, time::Duration};

use anyhow::Context;
use clap::Parser;
use futures_util::future::try_join_all;
use kagzi::workflow::{ClosePolicy, StepError, WorkflowFailedEvent};
use kagzi::{RetryPolicy, StepContext, Worker, WorkflowContext};
use kagzi_faults::{Execution, ExecutionLog, Fate, Move, Phase, QUEUE, Script, StepPlan, StepResult, flaky};
use tokio::runtime::{Builder, Handle, RuntimeFlavor};

#[derive(Parser, Clone)]
struct Args {
    #[arg(long)]
    address: String,
    #[arg(long)]
    dir: PathBuf,
    /// Workflow types to register; all of them follow the script, but for the load tests' `flaky`.
    #[arg(long, default_value = "script", value_delimiter = ',')]
    types: Vec<String>,
    /// Also registers a failure handler of this type: one step, `handle`.
    #[arg(long)]
    handler: Option<String>,
    #[arg(long, default_value_t = 100)]
    max_concurrent: u32,
    #[arg(long, default_value_t = 60_000)]
    drain_timeout_ms: u64,
    #[arg(long)]
    hostname: Option<String>,
    /// KEY=VALUE
    #[arg(long)]
    label: Vec<String>,
    /// Workers in this one process.
    #[arg(long, default_value_t = 1)]
    workers: u32,
    /// The code has changed: steps of the first name are called by the second, OLD=NEW.
    #[arg(long)]
    rename: Option<String>,
    /// User code has one thread for everything.
    #[arg(long)]
    one_thread: bool,
    /// The code has changed: moves come in the opposite order.
    #[arg(long)]
    reverse: bool,
    /// Where to send spans; with the feature `otel` only.
    #[arg(long)]
    otlp: Option<String>,
}

fn main() -> anyhow::Result<()> {
    kagzi_faults::exit_when_stdin_closes();
    let args = Args::parse();
    let mut runtime = match args.one_thread {
        true => Builder::new_current_thread(),
        false => Builder::new_multi_thread(),
    };
    runtime.enable_all().build()?.block_on(work(args))
}

async fn work(args: Args) -> anyhow::Result<()> {
    match &args.otlp {
        #[cfg(feature = "otel")]
        Some(endpoint) => drop(kagzi_faults::spans::export("worker", endpoint)?),
        #[cfg(not(feature = "otel"))]
        Some(_) => anyhow::bail!("--otlp needs the feature `otel`"),
        None => tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init(),
    }
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..args.workers {
        workers.spawn(worker(&args).await?.run());
    }
    while let Some(ended) = workers.join_next().await {
        ended??;
    }
    Ok(())
}

async fn worker(args: &Args) -> anyhow::Result<Worker> {
    let mut builder = Worker::builder(args.address.as_str(), QUEUE)
        .max_concurrent(args.max_concurrent)
        .version("fault-test")
        .drain_timeout(Duration::from_millis(args.drain_timeout_ms));
    if let Some(hostname) = &args.hostname {
        builder = builder.hostname(hostname.clone());
    }
    for label in &args.label {
        let (key, value) = label.split_once('=').context("a label is KEY=VALUE")?;
        builder = builder.label(key, value);
    }
    let mut worker = builder.build().await?;
    for name in &args.types {
        if name == flaky::TYPE {
            worker.register(name, flaky::run);
            continue;
        }
        let args = args.clone();
        worker.register(name, move |ctx: WorkflowContext, script: Script| follow(args.clone(), ctx, script));
    }
    if let Some(name) = &args.handler {
        let args = args.clone();
        worker.register(name, move |ctx: WorkflowContext, failed: WorkflowFailedEvent| {
            handle(args.clone(), ctx, failed)
        });
    }
    Ok(worker)
}

/// A failure handler: says whose failure it handled, and how long that run's input was.
async fn handle(
    args: Args,
    ctx: WorkflowContext,
    failed: WorkflowFailedEvent,
) -> anyhow::Result<(String, usize)> {
    let plan = StepPlan { name: "handle".into(), ..StepPlan::default() };
    step(&ctx, &ExecutionLog::open(&args.dir), plan).await?;
    Ok((failed.failed_run_id, failed.original_input.len()))
}

async fn follow(args: Args, ctx: WorkflowContext, mut script: Script) -> anyhow::Result<Vec<StepResult>> {
    let log = ExecutionLog::open(&args.dir);
    let renamed = args.rename.as_deref().and_then(|names| names.split_once('='));
    if args.reverse {
        script.moves.reverse();
    }
    let mut results = Vec::new();
    for next in script.moves {
        match next {
            Move::Step(mut plan) => {
                if let Some((old, new)) = renamed
                    && plan.name == old
                {
                    plan.name = new.into();
                }
                results.push(step(&ctx, &log, plan).await?);
            }
            Move::Sleep { ms } => ctx.sleep(Duration::from_millis(ms)).await?,
            Move::Gate { name } => {
                log.wait_at(&name)?;
                while !log.gate_is_open(&name) {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
            Move::Signal { channel } => {
                let told: serde_json::Value = ctx.signal(&channel).await?;
                tracing::debug!(%told, "signalled");
            }
            Move::Events { topic, count } => {
                for _ in 0..count {
                    ctx.event::<serde_json::Value>(&topic).await?;
                }
            }
            Move::Signals { channel, count } => {
                let signals = ctx.signals::<serde_json::Value>(&channel);
                for _ in 0..count {
                    signals.next().await?;
                }
            }
            Move::SignalWithin { channel, ms } => {
                let within = Duration::from_millis(ms);
                let told: Option<String> = ctx.signal(&channel).timeout(within).await?;
                results.push(StepResult::told(&channel, told.unwrap_or_else(|| "nothing".into())));
            }
            Move::Promise { name, timeout_ms } => results.push(promised(&ctx, &name, timeout_ms).await?),
            Move::Answers { channel, count } => {
                let requests = ctx.requests::<String, String>(&channel);
                for _ in 0..count {
                    let request = requests.next().await?.context("the channel is open")?;
                    let answer = request.input.clone();
                    request.reply(&answer).await?;
                }
            }
            Move::Children { count, script, fate } => {
                results.extend(raise(&ctx, vec![script; count], fate).await?);
            }
            Move::Panic { message } => panic!("{message}"),
            Move::Abort => std::process::abort(),
        }
    }
    Ok(results)
}

/// Makes a promise and waits for it: with what it was completed, or why it was not.
async fn promised(ctx: &WorkflowContext, name: &str, timeout_ms: Option<u64>) -> anyhow::Result<StepResult> {
    let mut promise = ctx.promise::<String>(name);
    if let Some(ms) = timeout_ms {
        promise = promise.timeout(Duration::from_millis(ms));
    }
    let became = match promise.await?.await {
        Ok(value) => value,
        Err(error) => error.downcast::<StepError>()?.code,
    };
    Ok(StepResult::told(name, became))
}

/// Starts one run for each script; what they return, if they are waited for.
async fn raise(ctx: &WorkflowContext, scripts: Vec<Script>, fate: Fate) -> anyhow::Result<Vec<StepResult>> {
    let close = match fate {
        Fate::Awaited => {
            let ended: Vec<Vec<StepResult>> = ctx.children("script", scripts).fail_fast().await?;
            return Ok(ended.concat());
        }
        Fate::Closed => ClosePolicy::Cancel,
        Fate::Abandoned => ClosePolicy::Abandon,
    };
    let start = |script| ctx.child::<Vec<StepResult>>("script", &script).on_close(close).start();
    try_join_all(scripts.into_iter().map(start)).await?;
    Ok(vec![])
}

async fn step(ctx: &WorkflowContext, log: &ExecutionLog, plan: StepPlan) -> anyhow::Result<StepResult> {
    let policy = RetryPolicy {
        maximum_attempts: plan.attempts_max,
        initial_interval: plan.retry_ms.map(Duration::from_millis),
        ..RetryPolicy::default()
    };
    let mut builder = ctx.step(&plan.name).retry_policy(policy);
    if let Some(ms) = plan.timeout_ms {
        builder = builder.timeout(Duration::from_millis(ms));
    }
    builder.run(|step| execute(log.clone(), plan.clone(), step)).await
}

async fn execute(log: ExecutionLog, plan: StepPlan, step: StepContext) -> anyhow::Result<StepResult> {
    let began = Execution {
        phase: Phase::Began,
        run: step.run_id().into(),
        step: step.path().into(),
        attempt: step.attempt(),
        key: step.idempotency_key(),
        pid: std::process::id(),
        nonce: uuid::Uuid::new_v4().to_string(),
    };
    log.append(&began)?;
    if log.sink(&began.key)? {
        log.append(&Execution { phase: Phase::Effect, ..began.clone() })?;
    }
    if let Some(gate) = &plan.gate {
        while !log.gate_is_open(gate) && (!plan.blocks || began.attempt == 1) {
            match plan.blocks {
                // With one thread there is no other place.
                true if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                true => tokio::task::block_in_place(|| std::thread::sleep(Duration::from_millis(10))),
                false => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }
    if began.attempt <= plan.hangs {
        std::future::pending::<()>().await;
    }
    if began.attempt <= plan.panics {
        panic!("{} panics on attempt {}", plan.name, began.attempt);
    }
    anyhow::ensure!(began.attempt > plan.failures, "{} fails on attempt {}", plan.name, began.attempt);
    log.append(&Execution { phase: Phase::Ended, ..began.clone() })?;
    Ok(StepResult { step: began.step, nonce: began.nonce, pid: began.pid })
}
