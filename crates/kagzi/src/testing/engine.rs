//! An engine in memory whose clock stands still until a test moves it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kagzi_server::{Embedded, Settings, StoreUrl, Timestamp};
use parking_lot::Mutex;
use tokio::task::AbortHandle;

use crate::testing::clock::TestClock;
use crate::testing::history::History;
use crate::testing::waiting::Watch;
use crate::worker::WorkerBuilder;
use crate::{Client, Worker};

/// No jump of the clock makes a worker look lost: longer than the longest sleep there is.
const FOR_EVER: Duration = Duration::from_secs(30 * 366 * 24 * 3600);

/// A pause between two looks at the runs, in real time.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// An engine for tests. Sleeps, retries, deadlines and timeouts of the server follow its clock, which moves
/// by [`advance`](TestEngine::advance) and [`skip_time`](TestEngine::skip_time) only. The worker's own limit
/// on a step (`.timeout(..)`) is real time, because the step's code is.
///
/// ```
/// use std::time::Duration;
/// use kagzi::{WorkflowContext, client::RunStatus, testing::TestEngine};
///
/// async fn remind(ctx: WorkflowContext, user: String) -> anyhow::Result<String> {
///     ctx.sleep(Duration::from_secs(3600)).await?;
///     ctx.run("mail", async move { Ok(format!("mailed {user}")) }).await
/// }
///
/// # #[tokio::main]
/// # async fn main() -> anyhow::Result<()> {
/// let engine = TestEngine::start().await;
/// engine.work("mails", |worker| { worker.register("remind", remind); }).await;
/// // The same where the worker needs options; this one ends with the test's runtime.
/// tokio::spawn(engine.worker("mails").max_concurrent(4).register("remind", remind).run());
/// let began = engine.now();
/// let run = engine.client().workflow("remind", "mails", "Ada").await?;
///
/// engine.settle().await;
/// engine.history(run.run_id()).await.assert_status(RunStatus::Sleeping);
/// engine.advance(Duration::from_secs(3600));
/// assert_eq!(run.result::<String>().await?, "mailed Ada");
/// assert_eq!(engine.now().duration_since(began)?, Duration::from_secs(3600));
///
/// // From here on the clock moves by itself, whenever everything waits.
/// engine.skip_time();
/// let again = engine.client().workflow("remind", "mails", "Bob").await?;
/// assert_eq!(again.result::<String>().await?, "mailed Bob");
/// engine.close().await;
/// # Ok(())
/// # }
/// ```
pub struct TestEngine {
    server: Embedded,
    pub(crate) clock: TestClock,
    /// Aborted with the engine.
    tasks: Mutex<Vec<AbortHandle>>,
}

impl TestEngine {
    /// Starts an empty engine; its clock shows the machine's time.
    pub async fn start() -> TestEngine {
        TestEngine::start_with(&StoreUrl::Memory, FOR_EVER).await
    }

    pub(crate) async fn start_with(store: &StoreUrl, stale_after: Duration) -> TestEngine {
        let since_1970 = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let clock = TestClock::new(Timestamp(0) + since_1970.saturating_sub(stale_after));
        let settings = Settings {
            // In real time, unlike the rest. Workers that are never stale need no heartbeat.
            heartbeat_interval: stale_after / 2,
            stale_after,
            lease: stale_after,
            // Here workers may do nothing but die, and a run that waits for another makes no progress
            // meanwhile.
            worker_losses_max: 1_000,
            // A year may pass in a test, and its first run is still of interest.
            retention: None,
            ..Settings::default()
        };
        let server = Embedded::open_with(store, settings, Arc::new(clock.clone())).await;
        let server = server.expect("a store in memory, or a file of a test's own, can always be opened");
        // For that long after its start the engine ends nothing by time, not even a run past its deadline.
        clock.awaited().await;
        clock.advance(stale_after);
        TestEngine { server, clock, tasks: Mutex::default() }
    }

    /// A client of this engine.
    pub fn client(&self) -> Client {
        Client::on_channel(self.server.channel())
    }

    /// Begins to build a worker for a queue of this engine.
    pub fn worker(&self, task_queue: &str) -> WorkerBuilder {
        WorkerBuilder::on_channel(self.server.channel(), task_queue).handle_signals(false)
    }

    /// Runs a worker for a queue until the engine is dropped.
    pub async fn work(&self, task_queue: &str, register: impl FnOnce(&mut Worker)) {
        let mut worker = self.worker(task_queue).build().await.expect("a worker for a named queue");
        register(&mut worker);
        self.own(tokio::spawn(async move {
            worker.run().await.expect("the worker serves");
        }));
    }

    /// What the engine's clock shows.
    pub fn now(&self) -> SystemTime {
        let micros = u64::try_from(self.clock.now().0).unwrap_or(0);
        SystemTime::UNIX_EPOCH + Duration::from_micros(micros)
    }

    /// Moves the clock. What is due then happens at once, but not before this returns: see
    /// [`settle`](TestEngine::settle).
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// Waits until nothing happens any more: every run of the namespace `default` has ended, waits for a time
    /// or a person, or has no worker.
    pub async fn settle(&self) {
        let client = self.client();
        let mut watch = Watch::default();
        while watch.look(&client, self.clock.now()).await.is_busy() {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// From now on the clock jumps to the next sleep, retry or deadline that is due, whenever all runs of
    /// the namespace `default` wait: a workflow that sleeps for a month ends at once.
    pub fn skip_time(&self) {
        let (client, clock) = (self.client(), self.clock.clone());
        self.own(tokio::spawn(async move {
            let mut watch = Watch::default();
            loop {
                let now = clock.now();
                if let Some(next) = watch.look(&client, now).await.next_due() {
                    clock.advance(next - now);
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }));
    }

    /// Reads what was recorded of a run.
    pub async fn history(&self, run_id: &str) -> History {
        History::read(&self.client(), run_id).await
    }

    /// Stops workers and server. Dropping the engine does the same, but waits for nothing.
    pub async fn close(self) {
        self.abort_tasks();
        self.server.close().await;
    }

    fn own(&self, task: tokio::task::JoinHandle<()>) {
        self.tasks.lock().push(task.abort_handle());
    }

    fn abort_tasks(&self) {
        self.tasks.lock().drain(..).for_each(|task| task.abort());
    }
}

impl Drop for TestEngine {
    fn drop(&mut self) {
        self.abort_tasks();
    }
}
