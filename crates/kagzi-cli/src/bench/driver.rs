use super::workload::{Input, Output, Shape, WORKFLOW_TYPE};
use crate::address::Address;
use crate::payload;
use crate::session::{self, Workflows};
use anyhow::{Context, ensure};
use indicatif::ProgressBar;
use kagzi_proto::v1::{StartWorkflowRequest, WaitWorkflowRunRequest, WorkflowRun, WorkflowStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// One HTTP/2 connection is one task at each end and becomes the bottleneck before the server does.
const CONNECTIONS: usize = 4;

/// A run that has not ended by then counts as an error; the benchmark goes on.
const RUN_TIMEOUT: Duration = Duration::from_secs(60);

/// The client side: starts runs, awaits their results and checks them.
#[derive(Clone)]
pub struct Driver {
    connections: Arc<[Workflows]>,
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
    pub async fn connect(address: &Address, shape: Shape, queue: &str) -> anyhow::Result<Self> {
        let mut connections = Vec::with_capacity(CONNECTIONS);
        for _ in 0..CONNECTIONS {
            connections.push(session::workflows_over(session::connect(address).await?));
        }
        Ok(Driver { connections: connections.into(), shape, queue: queue.into(), next: Arc::default() })
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
        let mut workflows = self.connections[number as usize % CONNECTIONS].clone();
        let mut tally = Tally::default();
        let take_one = |left: u64| left.checked_sub(1);
        while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take_one).is_ok() {
            let began = Instant::now();
            match self.one_run(&mut workflows).await {
                Ok(()) => tally.latencies.push(began.elapsed()),
                Err(error) => {
                    tally.errors += 1;
                    tally.first_error.get_or_insert(format!("{error:#}"));
                }
            }
            progress.inc(1);
        }
        tally
    }

    async fn one_run(&self, workflows: &mut Workflows) -> anyhow::Result<()> {
        let input = Input::new(self.shape, self.next.fetch_add(1, Ordering::Relaxed));
        let start = StartWorkflowRequest {
            task_queue: self.queue.to_string(),
            workflow_type: WORKFLOW_TYPE.into(),
            input: Some(payload::json(serde_json::to_vec(&input)?)),
            ..StartWorkflowRequest::default()
        };
        let run_id = workflows.start_workflow(start).await?.into_inner().run_id;
        let wait = WaitWorkflowRunRequest {
            run_id,
            timeout_ms: RUN_TIMEOUT.as_millis() as i64,
            ..WaitWorkflowRunRequest::default()
        };
        let answer = workflows.wait_workflow_run(wait).await?.into_inner();
        ensure!(answer.finished, "a run did not end within {} s", RUN_TIMEOUT.as_secs());
        check(&input, answer.workflow_run.context("the server answered without a run")?)
    }
}

fn check(input: &Input, run: WorkflowRun) -> anyhow::Result<()> {
    let status = run.status();
    ensure!(status == WorkflowStatus::Completed, "run {} ended {status:?}: {:?}", run.run_id, run.error);
    let output = run.output.with_context(|| format!("run {} has no output", run.run_id))?;
    let output: Output = serde_json::from_slice(&output.data)
        .with_context(|| format!("run {} returned something else", run.run_id))?;
    ensure!(output == input.expected_output(), "run {} returned a wrong result", run.run_id);
    Ok(())
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.latencies.extend(other.latencies);
        self.errors += other.errors;
        self.first_error = self.first_error.take().or(other.first_error);
    }
}

#[cfg(test)]
mod tests {
    use super::super::workload::Workload;
    use super::*;

    fn ended(status: WorkflowStatus, output: &Output) -> WorkflowRun {
        WorkflowRun {
            status: status.into(),
            output: Some(payload::json(serde_json::to_vec(output).unwrap())),
            ..WorkflowRun::default()
        }
    }

    #[test]
    fn only_the_right_result_of_a_completed_run_counts() {
        let input = Input::new(Workload::W3.shape().unwrap(), 5);
        let neighbour = Input::new(Workload::W3.shape().unwrap(), 6);
        let right = input.expected_output();

        assert!(check(&input, ended(WorkflowStatus::Completed, &right)).is_ok());
        assert!(check(&input, ended(WorkflowStatus::Failed, &right)).is_err());
        assert!(check(&input, ended(WorkflowStatus::Completed, &neighbour.expected_output())).is_err());
        let empty = WorkflowRun { status: WorkflowStatus::Completed.into(), ..WorkflowRun::default() };
        assert!(check(&input, empty).is_err());
    }
}
