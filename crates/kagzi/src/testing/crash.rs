//! One workflow, executed once per moment at which its worker can die.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kagzi_server::StoreUrl;
use serde::Serialize;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::client::{Reason, Run, RunHandle, RunStatus};
use crate::error::Error;
use crate::testing::engine::TestEngine;
use crate::testing::history::History;
use crate::testing::probe::{CrashPoint, Probe};
use crate::testing::waiting::due_at;
use crate::{RetryPolicy, Worker};
use tokio_util::sync::CancellationToken;

const QUEUE: &str = "crash-test";

/// A worker that died is noticed after this long by the engine's clock, so a crash costs little of it.
const STALE_AFTER: Duration = Duration::from_secs(1);

/// Longer than any test.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Real time after which a run that does not end is reported instead of waited for.
const PATIENCE: Duration = Duration::from_secs(20);
/// A run whose worker dies after every report is executed dozens of times, maybe on a machine that builds.
const PATIENCE_WITH_DEATHS: Duration = Duration::from_secs(50);

/// Executes the workflow once undisturbed, and then again and again on a new engine each, with a worker that
/// dies before or after one of its reports: results of steps and scopes, failures, sleeps, waits, labels,
/// values, promises, children, parks, the beginning of a new generation, the end. A new worker takes the run
/// over. Time is skipped, and children that the worker registers are executed by it too, with their reports
/// among those at which it dies.
///
/// Panics unless every execution ends as the first did: the same status, output, error and recorded step
/// results, each recorded once. So the workflow must be deterministic apart from Kagzi: a step that returns
/// the time or a random number fails the comparison. The run's own id may occur in results.
///
/// ```
/// use kagzi::{WorkflowContext, testing::crash_everywhere};
///
/// async fn order(ctx: WorkflowContext, cents: u64) -> anyhow::Result<u64> {
///     let paid: u64 = ctx.run("charge", async move { Ok(cents) }).await?;
///     ctx.sleep(std::time::Duration::from_secs(3600)).await?;
///     ctx.run("ship", async move { Ok(paid) }).await
/// }
///
/// # #[tokio::main]
/// # async fn main() {
/// let report = crash_everywhere(|worker| { worker.register("order", order); }, "order", 450).await;
/// assert_eq!(report.most_executions_of("charge"), 2);
/// # }
/// ```
pub async fn crash_everywhere(
    register: impl Fn(&mut Worker),
    workflow_type: &str,
    input: impl Serialize,
) -> CrashReport {
    crash_everywhere_while_signalled(register, workflow_type, input, Vec::new()).await
}

/// The same for a workflow that waits for signals: whenever the run is parked and waits for one, it is told
/// the next of these values on their channels. So each of them meets a run that sleeps;
/// [`crash_while_signalled`] tells them at any other moment.
///
/// ```
/// use kagzi::{WorkflowContext, testing::crash_everywhere_while_signalled};
///
/// async fn approve(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
///     let by: String = ctx.signal("approved").await?;
///     ctx.run("ship", async move { Ok(format!("shipped, approved by {by}")) }).await
/// }
///
/// # #[tokio::main]
/// # async fn main() {
/// let register = |worker: &mut kagzi::Worker| { worker.register("approve", approve); };
/// let told = vec![("approved".to_owned(), "ada".into())];
/// let report = crash_everywhere_while_signalled(register, "approve", (), told).await;
/// assert!(report.died_at().any(|moment| moment.contains("'approved' waited")));
/// # }
/// ```
pub async fn crash_everywhere_while_signalled(
    register: impl Fn(&mut Worker),
    workflow_type: &str,
    input: impl Serialize,
    signals: Vec<(String, serde_json::Value)>,
) -> CrashReport {
    let input = serde_json::to_value(input).expect("the input is JSON");
    let play = |crash_at| Trial::play(&register, (workflow_type, &input), &signals, crash_at);

    let undisturbed = play(None).await;
    assert!(undisturbed.outcome.status != RunStatus::Paused, "without any crash, {}", undisturbed.history);
    let mut trials = Vec::new();
    for (at, report) in undisturbed.reports.iter().enumerate() {
        let number = at as u32 + 1;
        for (crash_at, when) in [(CrashPoint::Before(number), "before"), (CrashPoint::After(number), "after")]
        {
            let crash = format!("crash {when} report {number} ({report})");
            let trial = play(Some(crash_at)).await;
            trial.compare(&undisturbed.outcome, &crash);
            trials.push((crash, trial.executions));
        }
    }
    CrashReport { undisturbed: undisturbed.executions, trials }
}

/// When the worker dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crashes {
    /// Never.
    Never,
    /// After its first report was committed, or between that and its second; so does the next worker, and so
    /// on.
    AfterEveryReport,
}

/// One execution of a workflow.
#[derive(Debug, Clone)]
pub struct CrashTrial {
    /// What was recorded.
    pub history: History,
    /// How many workers died.
    pub crashes: u32,
}

/// Executes the workflow once, with workers that die one after the other: the run goes on by a replay after
/// each of its reports. Steps that set no policy of their own may be executed a thousand times. Nothing is
/// compared; for workflows whose parallel steps may end in any order, see what the run itself says.
pub async fn crash_after_every_report(
    register: impl Fn(&mut Worker),
    workflow_type: &str,
    input: impl Serialize,
    crashes: Crashes,
) -> CrashTrial {
    crash_on(&StoreUrl::Memory, register, (workflow_type, input), crashes, Vec::new()).await
}

/// The same, while the run is told these values on these channels, one after the other and at any moment:
/// before its worker begins, while it executes, parks or dies.
///
/// ```
/// use kagzi::{WorkflowContext, testing::{Crashes, crash_while_signalled}};
///
/// async fn sum(ctx: WorkflowContext, _: ()) -> anyhow::Result<u64> {
///     let numbers = ctx.signals::<u64>("number");
///     Ok(numbers.next().await?.unwrap_or(0) + numbers.next().await?.unwrap_or(0))
/// }
///
/// # #[tokio::main]
/// # async fn main() {
/// let told = vec![("number".to_owned(), 2.into()), ("number".to_owned(), 40.into())];
/// let register = |worker: &mut kagzi::Worker| { worker.register("sum", sum); };
/// let trial = crash_while_signalled(register, "sum", (), Crashes::AfterEveryReport, told).await;
/// trial.history.assert_completed();
/// # }
/// ```
pub async fn crash_while_signalled(
    register: impl Fn(&mut Worker),
    workflow_type: &str,
    input: impl Serialize,
    crashes: Crashes,
    signals: Vec<(String, serde_json::Value)>,
) -> CrashTrial {
    crash_on(&StoreUrl::Memory, register, (workflow_type, input), crashes, signals).await
}

/// The same on a store of the caller's choice, for our own tests.
#[doc(hidden)]
pub async fn crash_on_file(
    file: &Path,
    register: impl Fn(&mut Worker),
    workflow_type: &str,
    crashes: Crashes,
    signals: Vec<(String, serde_json::Value)>,
) -> CrashTrial {
    let store = StoreUrl::Sqlite(file.to_owned());
    crash_on(&store, register, (workflow_type, ()), crashes, signals).await
}

async fn crash_on(
    store: &StoreUrl,
    register: impl Fn(&mut Worker),
    (workflow_type, input): (&str, impl Serialize),
    crashes: Crashes,
    signals: Vec<(String, serde_json::Value)>,
) -> CrashTrial {
    let mut signals = signals.into_iter().enumerate();
    let engine = TestEngine::start_with(store, STALE_AFTER).await;
    // A step that ran when its worker died has used up an attempt, and here workers do nothing but die.
    let policy =
        RetryPolicy::default().maximum_attempts(1_000).run_retries_max(-1).run_retry_budget(FOR_EVER);
    let start = engine.client().workflow(workflow_type, QUEUE, &input).id(QUEUE).retry_policy(policy);
    let run = start.await.unwrap_or_else(|error| panic!("the run does not start: {error}"));
    let mut died = 0;
    let probe = |died: u32| {
        let crash_at = match crashes {
            Crashes::Never => None,
            // Every other worker has executed code that nobody hears of.
            Crashes::AfterEveryReport if died.is_multiple_of(2) => Some(CrashPoint::After(1)),
            Crashes::AfterEveryReport => Some(CrashPoint::Before(2)),
        };
        Arc::new(Probe::new(crash_at))
    };
    let mut current = probe(died);
    let mut victim = Some(Serving::begin(&engine, &register, current.clone()).await);
    let began = Instant::now();
    let mut looks = 0_u32;
    loop {
        looks += 1;
        if looks.is_multiple_of(2)
            && let Some((number, (channel, value))) = signals.next()
        {
            // One that has ended meanwhile refuses: nobody waits any more.
            let _ = run.signal(channel, &value).id(number.to_string()).await;
        }
        if current.crashed.is_cancelled() {
            if let Some(victim) = victim.take() {
                victim.die().await;
            }
            died += 1;
            current = probe(died);
            engine.advance(STALE_AFTER * 2);
        }
        let now = decisive(&engine, &run).await;
        match now.status {
            RunStatus::Pending | RunStatus::Sleeping => {
                let due = due_at(&now).filter(|due| *due > engine.clock.now());
                if let Some(due) = due {
                    // A worker that lives through a long jump would look lost. It leaves in peace: into a
                    // stream that only seems to be there the run would be given in vain.
                    if let Some(idle) = victim.take() {
                        idle.drain_unless(&current.crashed).await;
                    }
                    engine.clock.advance(due - engine.clock.now());
                }
                if victim.is_none() {
                    victim = Some(Serving::begin(&engine, &register, current.clone()).await);
                }
            }
            // Its worker is dead, and the engine has not noticed yet.
            RunStatus::Running if victim.is_none() => engine.advance(STALE_AFTER),
            // A sleep beside steps that run ends by the engine's clock.
            RunStatus::Running => engine.advance(Duration::from_millis(1)),
            RunStatus::Unknown | RunStatus::Compensating => {}
            RunStatus::Completed
            | RunStatus::Failed
            | RunStatus::Cancelled
            | RunStatus::TimedOut
            | RunStatus::Paused => break,
        }
        if began.elapsed() > PATIENCE_WITH_DEATHS {
            break;
        }
        tokio::select! {
            () = current.crashed.cancelled() => {}
            () = tokio::time::sleep(Duration::from_millis(1)) => {}
        }
    }
    let history = engine.history(run.run_id()).await;
    if let Some(idle) = victim.take() {
        idle.die().await;
    }
    engine.close().await;
    CrashTrial { history, crashes: died }
}

/// The run on which it depends how things go on: a parent that waits for children does not move by itself.
async fn decisive(engine: &TestEngine, run: &RunHandle) -> Run {
    let now = run.describe().await.unwrap_or_else(|error| panic!("the run is gone: {error}"));
    if now.reason != Some(Reason::Child) {
        return now;
    }
    let all = engine.client().runs().all().await.unwrap_or_else(|error| panic!("no runs: {error}"));
    let moves = |run: &Run| run.status == RunStatus::Running || run.wake_up_at.is_some();
    let next =
        all.into_iter().filter(moves).min_by_key(|run| (run.status != RunStatus::Running, run.wake_up_at));
    next.unwrap_or(now)
}

/// How often the code of each step really ran, with and without crashes.
///
/// ```
/// # use kagzi::{WorkflowContext, testing::crash_everywhere};
/// # async fn order(ctx: WorkflowContext, _: ()) -> anyhow::Result<u64> {
/// #     ctx.run("charge", async { Ok(7) }).await
/// # }
/// # #[tokio::main]
/// # async fn main() {
/// let report = crash_everywhere(|worker| { worker.register("order", order); }, "order", ()).await;
/// assert!(report.crash_points() > 0);
/// assert_eq!(report.executions_of("charge"), 1, "without a crash");
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct CrashReport {
    undisturbed: BTreeMap<String, u32>,
    trials: Vec<(String, BTreeMap<String, u32>)>,
}

impl CrashReport {
    /// At how many points the worker was killed.
    pub fn crash_points(&self) -> usize {
        self.trials.len()
    }

    /// Where the worker was killed, in words: `crash after report 3 (step 'charge' completed)`.
    pub fn died_at(&self) -> impl Iterator<Item = &str> {
        self.trials.iter().map(|(crash, _)| crash.as_str())
    }

    /// How often the step's code ran without a crash.
    pub fn executions_of(&self, step: &str) -> u32 {
        self.undisturbed.get(step).copied().unwrap_or(0)
    }

    /// How often it ran where it ran most: what its receiver must bear.
    pub fn most_executions_of(&self, step: &str) -> u32 {
        let disturbed = self.trials.iter().filter_map(|(_, executions)| executions.get(step));
        disturbed.copied().max().unwrap_or(0).max(self.executions_of(step))
    }
}

impl fmt::Display for CrashReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} crash points, every outcome the same", self.crash_points())?;
        for (step, executions) in &self.undisturbed {
            writeln!(f, "step '{step}' ran {executions} time(s), at most {}", self.most_executions_of(step))?;
        }
        Ok(())
    }
}

/// What must not depend on crashes.
#[derive(Debug, PartialEq)]
struct Outcome {
    status: RunStatus,
    output: String,
    error: String,
    results: BTreeMap<String, Vec<String>>,
}

/// One execution of the workflow on its own engine.
struct Trial {
    outcome: Outcome,
    history: History,
    executions: BTreeMap<String, u32>,
    reports: Vec<String>,
}

impl Trial {
    async fn play(
        register: &impl Fn(&mut Worker),
        (workflow_type, input): (&str, &serde_json::Value),
        signals: &[(String, serde_json::Value)],
        crash_at: Option<CrashPoint>,
    ) -> Trial {
        let mut signals = signals.iter().enumerate();
        let engine = TestEngine::start_with(&StoreUrl::Memory, STALE_AFTER).await;
        let probe = Arc::new(Probe::new(crash_at).counting_values());
        let start = engine.client().workflow(workflow_type, QUEUE, input).id(QUEUE);
        let run = start.await.unwrap_or_else(|error| panic!("the run does not start: {error}"));
        let mut victim = Some(Serving::begin(&engine, register, probe.clone()).await);
        let began = Instant::now();
        let mut recovered = false;
        loop {
            if probe.crashed.is_cancelled() && !recovered {
                recovered = true;
                if let Some(victim) = victim.take() {
                    victim.die().await;
                }
                engine.advance(STALE_AFTER * 2);
            }
            let now = decisive(&engine, &run).await;
            if now.status == RunStatus::Sleeping
                && now.run_id == run.run_id()
                && now.reason == Some(Reason::Signal)
                && let Some((number, (channel, value))) = signals.next()
            {
                let told = run.signal(channel.as_str(), value).id(number.to_string()).await;
                told.unwrap_or_else(|error| panic!("the run cannot be told: {error}"));
                continue;
            }
            match now.status {
                RunStatus::Pending | RunStatus::Sleeping => {
                    let due = due_at(&now).filter(|due| *due > engine.clock.now());
                    if let Some(due) = due {
                        // A worker that lives through a long jump would look lost.
                        if let Some(idle) = victim.take() {
                            idle.drain().await;
                        }
                        engine.clock.advance(due - engine.clock.now());
                    }
                    if victim.is_none() {
                        victim = Some(Serving::begin(&engine, register, probe.clone()).await);
                    }
                }
                // Its worker is dead, and the engine has not noticed yet.
                RunStatus::Running if victim.is_none() => engine.advance(STALE_AFTER),
                RunStatus::Running | RunStatus::Unknown | RunStatus::Compensating => {}
                RunStatus::Completed
                | RunStatus::Failed
                | RunStatus::Cancelled
                | RunStatus::TimedOut
                | RunStatus::Paused => break,
            }
            if began.elapsed() > PATIENCE {
                let history = engine.history(run.run_id()).await;
                panic!("the run does not end with a crash at {crash_at:?}: {history}");
            }
            tokio::select! {
                () = probe.crashed.cancelled(), if !recovered => {}
                () = tokio::time::sleep(Duration::from_millis(1)) => {}
            }
        }
        let history = engine.history(run.run_id()).await;
        if let Some(idle) = victim.take() {
            idle.die().await;
        }
        engine.close().await;
        let (executions, reports) = (probe.executions(), probe.reports());
        Trial { outcome: Outcome::of(&history, &run), history, executions, reports }
    }

    fn compare(&self, expected: &Outcome, crash: &str) {
        for (step, results) in &self.outcome.results {
            assert!(
                results.len() == 1,
                "{crash}: step '{step}' has {} results: {}",
                results.len(),
                self.history
            );
        }
        let same = self.outcome == *expected;
        assert!(
            same,
            "{crash}: ended as {:#?}, without a crash as {expected:#?}: {}",
            self.outcome, self.history
        );
    }
}

impl Outcome {
    fn of(history: &History, handle: &RunHandle) -> Outcome {
        let run = history.run();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(handle.run_id(), "{run_id}");
        let payload = |payload: &crate::client::Payload| text(&payload.data);
        let mut results = BTreeMap::<String, Vec<String>>::new();
        for event in history.of_kind("step_completed") {
            let result = event.payload.as_ref().map(payload).unwrap_or_default();
            results.entry(event.step.clone().unwrap_or_default()).or_default().push(result);
        }
        let error = run.error.as_ref().map(|error| format!("{}: {}", error.code, error.message));
        Outcome {
            status: run.status,
            output: run.output.as_ref().map(payload).unwrap_or_default(),
            error: text(error.unwrap_or_default().as_bytes()),
            results,
        }
    }
}

/// A worker that serves the engine in a task of its own.
struct Serving {
    task: JoinHandle<Result<(), Error>>,
    shutdown: CancellationToken,
}

impl Serving {
    async fn begin(engine: &TestEngine, register: &impl Fn(&mut Worker), probe: Arc<Probe>) -> Serving {
        let mut worker = engine.worker(QUEUE).build().await.expect("a worker for a named queue");
        worker.probe = Some(probe);
        register(&mut worker);
        let shutdown = worker.shutdown_token();
        Serving { task: tokio::spawn(worker.run()), shutdown: shutdown.token().clone() }
    }

    /// Gone in the middle of a word: nothing is given back, nothing is said.
    async fn die(self) {
        self.task.abort();
        // Aborted or finished, both are what was asked for.
        let _ = self.task.await;
    }

    /// Leaves, or dies if it crashes meanwhile.
    async fn drain_unless(mut self, crashed: &CancellationToken) {
        self.shutdown.cancel();
        tokio::select! {
            _ = &mut self.task => {}
            () = crashed.cancelled() => self.die().await,
        }
    }

    async fn drain(self) {
        self.shutdown.cancel();
        match self.task.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => panic!("the worker failed: {error}"),
            Err(panicked) => panic!("the worker died: {panicked}"),
        }
    }
}
