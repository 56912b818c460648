use super::account::{self, Seen};
use super::narrator::Narrator;
use super::order::{FATAL_STEP, NAP, Order, QUEUE, Receipt, WORKFLOW_TYPE};
use super::stage::Stage;
use super::step_log::StepLog;
use crate::address::Address;
use crate::output::Format;
use crate::run::wait_loop;
use crate::session::Session;
use anyhow::Context;
use kagzi::Client;
use kagzi::client::{RunHandle, RunStatus};
use kagzi::history::StepStatus;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// A step begins within milliseconds, but the first one also waits for a worker process to start.
const STEP_PATIENCE: Duration = Duration::from_secs(30);

/// A dead worker is noticed when its connection breaks; it then has two seconds to come back. The rest is for
/// a slow machine.
const TAKEOVER_PATIENCE: Duration = Duration::from_secs(30);

pub async fn conduct(stage: &mut Stage) -> anyhow::Result<()> {
    let narrator = Narrator::new();
    narrator.say("A run that survives its worker. Everything here lives in a scratch directory.\n")?;
    let log = StepLog::in_dir(stage.dir());

    let phase = narrator.phase("starting a server with a SQLite file")?;
    let address = stage.start_server().await?;
    phase.done(&format!("a server listens on {address}"))?;
    let session = session_with(address.clone());
    let client = session.client().await?;

    let phase = narrator.phase("starting a worker and an order: reserve, charge, sleep, ship, email")?;
    let run = start_order(&client).await?;
    let run_id = run.run_id();
    let first = stage.start_worker(&address)?;
    let killed = first.pid();
    phase.done(&format!("run {run_id} is started, worker {killed} takes it"))?;

    for step in ["reserve", "charge"] {
        let phase = narrator.phase(&format!("waiting for step {step}"))?;
        first.watch(log.begun(step, killed, STEP_PATIENCE)).await?;
        phase.done(&format!("worker {killed} ran {step}"))?;
    }
    let phase =
        narrator.phase(&format!("the run sleeps for {} s and holds no worker meanwhile", NAP.as_secs()))?;
    first.watch(log.begun(FATAL_STEP, killed, STEP_PATIENCE)).await?;
    phase.done(&format!("the run woke up, worker {killed} is in the middle of {FATAL_STEP}"))?;

    let recorded_before_kill = recorded_steps(&run).await?;
    first.kill().await?;
    let killed_at = Instant::now();
    narrator.say(&format!(
        "✗ worker {killed} was killed with SIGKILL, in mid-step, without a word to the server"
    ))?;

    let second = stage.start_worker(&address)?;
    let successor = second.pid();
    let phase = narrator.phase(&format!(
        "the connection broke: worker {killed} has 2 s to come back, then worker {successor} takes over"
    ))?;
    second.watch(log.begun(FATAL_STEP, successor, TAKEOVER_PATIENCE)).await?;
    let takeover = killed_at.elapsed();
    let took = takeover.as_secs_f64();
    phase.done(&format!("it did not: worker {successor} took over {took:.1} s after the kill"))?;

    let phase = narrator.phase("waiting for the result")?;
    let receipt = second.watch(result(&run)).await?;
    phase.done(&format!("order {} is complete", receipt.order))?;

    let executions = log.executions()?;
    let account =
        account::render(&Seen { executions, recorded_before_kill, done: receipt.done, killed, successor });
    narrator.say("\nWhat happened, counted by the steps themselves in a file of their own:")?;
    for line in &account.lines {
        narrator.say(&format!("  {line}"))?;
    }
    anyhow::ensure!(
        account.faults.is_empty(),
        "this should not have happened:\n  {}",
        account.faults.join("\n  ")
    );
    narrator.say(NEXT)
}

const NEXT: &str = "
A step's code runs at least once; its result is recorded exactly once.

Where to look next:
  kagzi dev               a server of your own, its data in .kagzi/
  README.md               a first workflow in 30 lines
  kagzi run list          the runs; then: run show ID, run history ID, run why ID
  kagzi --help            everything else";

fn session_with(address: Address) -> Session {
    Session { address, namespace: "default".into(), format: Format::Table }
}

async fn start_order(client: &Client) -> anyhow::Result<RunHandle> {
    let order = Order { order: "A-1001".into(), amount_cents: 4_200 };
    client.workflow(WORKFLOW_TYPE, QUEUE, order).await.context("could not start the order")
}

async fn recorded_steps(run: &RunHandle) -> anyhow::Result<BTreeSet<String>> {
    let completed = run.attempts().status(StepStatus::Completed).all().await;
    let completed = completed.context("could not list the order's steps")?;
    Ok(completed.into_iter().map(|attempt| attempt.step).collect())
}

async fn result(run: &RunHandle) -> anyhow::Result<Receipt> {
    let run = wait_loop::wait(run, Some(STEP_PATIENCE)).await?;
    anyhow::ensure!(
        run.status == RunStatus::Completed,
        "the order ended {}: {}",
        run.status,
        run.error.map(|error| error.message).unwrap_or_default()
    );
    run.output().context("the order's output is no receipt")
}
