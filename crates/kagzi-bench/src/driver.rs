use crate::stage::Stage;
use crate::workload::{Input, Output, Shape, WORKFLOW_TYPE};
use anyhow::{Context, ensure};
use kagzi::Client;
use kagzi::client::RunHandle;
use kagzi_shell::progress::ProgressBar;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A run that has not ended by then counts as an error; the benchmark goes on.
const RUN_TIMEOUT: Duration = Duration::from_secs(60);

/// The client side: starts runs, awaits their results and checks them.
#[derive(Clone)]
pub struct Driver {
    connections: Arc<[Client]>,
    shape: Shape,
    queue: Arc<str>,
    next: Arc<AtomicU64>,
}

/// What became of a number of runs.
#[derive(Default)]
pub struct Tally {
    pub latencies: Vec<Duration>,
    pub errors: u64,
    pub first_error: Option<String>,
}

impl Driver {
    pub fn new(stage: &Stage, shape: Shape) -> Driver {
        Driver::on(stage, &stage.queue, shape)
    }

    /// The same on another queue.
    pub fn on(stage: &Stage, queue: &str, shape: Shape) -> Driver {
        Driver { connections: stage.clients.clone().into(), shape, queue: queue.into(), next: Arc::default() }
    }

    /// One run, on the first connection, and how long it took.
    pub async fn once(&self) -> anyhow::Result<Duration> {
        let began = Instant::now();
        self.one_run(&self.connections[0]).await?;
        Ok(began.elapsed())
    }

    /// Completes `runs` runs, `concurrency` at a time.
    pub async fn drive(&self, runs: u64, concurrency: u32, progress: &ProgressBar) -> anyhow::Result<Tally> {
        let left = Arc::new(AtomicU64::new(runs));
        let mut clients = JoinSet::new();
        for number in 0..u64::from(concurrency).min(runs) {
            clients.spawn(self.clone().one_client(number, left.clone(), progress.clone()));
        }
        let mut total = Tally::default();
        while let Some(tally) = clients.join_next().await {
            total.add(tally.context("a benchmark client panicked")?);
        }
        progress.finish_and_clear();
        Ok(total)
    }

    async fn one_client(self, number: u64, left: Arc<AtomicU64>, progress: ProgressBar) -> Tally {
        let client = self.connections[number as usize % self.connections.len()].clone();
        let mut tally = Tally::default();
        let take_one = |left: u64| left.checked_sub(1);
        while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take_one).is_ok() {
            let began = Instant::now();
            tally.count(self.one_run(&client).await.map(|_| began.elapsed()));
            progress.inc(1);
        }
        tally
    }

    /// Starts a run, awaits its result and checks it.
    pub async fn one_run(&self, client: &Client) -> anyhow::Result<RunHandle> {
        let input = Input::new(self.shape, self.next.fetch_add(1, Ordering::Relaxed));
        let (run, output) = tokio::time::timeout(RUN_TIMEOUT, async {
            let start = client.workflow(WORKFLOW_TYPE, &*self.queue, &input);
            let run = match self.shape.named {
                true => start.id(format!("{}/{}", self.queue, input.n)).await?,
                false => start.await?,
            };
            let output: Output = run.result().await?;
            Ok::<_, kagzi::Error>((run, output))
        })
        .await
        .with_context(|| format!("a run did not end within {} s", RUN_TIMEOUT.as_secs()))??;
        ensure!(output == input.expected_output(), "run {} returned a wrong result", input.n);
        Ok(run)
    }
}

impl Tally {
    /// One run more: how long it took, or why it is an error.
    pub fn count(&mut self, took: anyhow::Result<Duration>) {
        match took {
            Ok(took) => self.latencies.push(took),
            Err(error) => {
                self.errors += 1;
                self.first_error.get_or_insert(format!("{error:#}"));
            }
        }
    }

    pub fn add(&mut self, other: Tally) {
        self.latencies.extend(other.latencies);
        self.errors += other.errors;
        self.first_error = self.first_error.take().or(other.first_error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_add_up_and_keep_the_first_error() {
        let failed =
            |message: &str| Tally { errors: 1, first_error: Some(message.into()), ..Tally::default() };
        let mut total = Tally { latencies: vec![Duration::from_millis(1)], ..Tally::default() };

        total.add(failed("first"));
        total.add(failed("second"));

        assert_eq!((total.latencies.len(), total.errors), (1, 2));
        assert_eq!(total.first_error.as_deref(), Some("first"));
    }
}
