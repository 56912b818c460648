//! Somebody on another queue who wants one run after the other: what do they feel of a crowd?

use crate::driver::Driver;
use crate::percentile::percentile_ms;
use crate::stage::{Post, Stage};
use crate::workload::{Workload, now_ms};
use anyhow::Context;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub struct Neighbour {
    enough: CancellationToken,
    running: JoinHandle<anyhow::Result<Vec<Sample>>>,
}

/// One run: when it was asked for, and how long it took.
struct Sample {
    began_ms: u64,
    took: Duration,
}

/// What the neighbour felt.
pub struct Felt(Vec<Sample>);

impl Neighbour {
    /// Begins, with a worker of their own.
    pub async fn begin(stage: &mut Stage) -> anyhow::Result<Neighbour> {
        let queue = format!("{}-neighbour", stage.queue);
        stage.start_worker(Post { at: 0, queue: &queue, slots: 8 }, &[]).await?;
        let driver = Driver::on(stage, &queue, Workload::W3.shape());
        // The first run waits for the worker process.
        stage.watch(driver.once()).await?;
        let enough = CancellationToken::new();
        let running = tokio::spawn(one_after_the_other(driver, enough.clone()));
        Ok(Neighbour { enough, running })
    }

    pub async fn end(self) -> anyhow::Result<Felt> {
        self.enough.cancel();
        let samples = self.running.await.context("the neighbour panicked")?;
        Ok(Felt(samples.context("a run of the neighbour failed")?))
    }
}

async fn one_after_the_other(driver: Driver, enough: CancellationToken) -> anyhow::Result<Vec<Sample>> {
    let mut samples = Vec::new();
    while !enough.is_cancelled() {
        let began_ms = now_ms();
        samples.push(Sample { began_ms, took: driver.once().await? });
    }
    Ok(samples)
}

impl Felt {
    /// Of the runs that were under way at some moment from `from_ms` to `to_ms`.
    pub fn p99_ms(&self, from_ms: u64, to_ms: u64) -> Option<f64> {
        let under_way = |sample: &&Sample| {
            let ended_ms = sample.began_ms + sample.took.as_millis() as u64;
            sample.began_ms < to_ms && ended_ms >= from_ms
        };
        let mut took: Vec<Duration> = self.0.iter().filter(under_way).map(|sample| sample.took).collect();
        took.sort_unstable();
        percentile_ms(&took, 99.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_counts_wherever_it_was_under_way() {
        let sample = |began_ms, took_ms| Sample { began_ms, took: Duration::from_millis(took_ms) };
        let felt = Felt(vec![sample(10, 5), sample(95, 20), sample(120, 7)]);

        assert_eq!(felt.p99_ms(0, 100), Some(20.0));
        assert_eq!(felt.p99_ms(100, 110), Some(20.0));
        assert_eq!(felt.p99_ms(116, 200), Some(7.0));
        assert_eq!(felt.p99_ms(200, 300), None);
    }
}
