//! A worker driven by hand, by the unary calls alone, so that a test decides what is sent and what is lost.

use kagzi_proto::v1::{self, worker_service_client::WorkerServiceClient};
use tonic::{Status, transport::Channel};

use crate::stage::QUEUE;

pub struct HandWorker {
    pub id: String,
    pub rpc: WorkerServiceClient<Channel>,
    types: Vec<String>,
}

impl HandWorker {
    pub async fn register(mut rpc: WorkerServiceClient<Channel>, workflow_type: &str) -> HandWorker {
        let types = vec![workflow_type.to_owned()];
        let request = v1::RegisterWorkerRequest {
            task_queue: QUEUE.into(),
            workflow_types: types.clone(),
            hostname: "by-hand".into(),
            pid: 1,
            ..Default::default()
        };
        let registered = rpc.register_worker(request).await.expect("a sound registration").into_inner();
        HandWorker { id: registered.worker_id, rpc, types }
    }

    /// One run, or none within the timeout.
    pub async fn poll(&self, timeout_ms: i64) -> Option<v1::PollActivityResponse> {
        let answer = self.poll_answer(timeout_ms).await.expect("a sound poll");
        (!answer.run_id.is_empty()).then_some(answer)
    }

    pub async fn poll_answer(&self, timeout_ms: i64) -> Result<v1::PollActivityResponse, Status> {
        let request = v1::PollActivityRequest {
            worker_id: self.id.clone(),
            task_queue: QUEUE.into(),
            supported_workflow_types: self.types.clone(),
            timeout_ms,
            ..Default::default()
        };
        Ok(self.rpc.clone().poll_activity(request).await?.into_inner())
    }

    /// A heartbeat that lists these runs.
    pub async fn beat(
        &self,
        held: &[&v1::PollActivityResponse],
    ) -> Result<v1::WorkerHeartbeatResponse, Status> {
        let lease = |run: &&v1::PollActivityResponse| v1::LeaseRef {
            run_id: run.run_id.clone(),
            epoch: run.lease_epoch,
        };
        let request = v1::WorkerHeartbeatRequest {
            worker_id: self.id.clone(),
            runs: held.iter().map(lease).collect(),
            ..Default::default()
        };
        Ok(self.rpc.clone().worker_heartbeat(request).await?.into_inner())
    }

    /// What is recorded of the run, read by giving it back and taking it again.
    pub async fn journal(&self, run: &v1::PollActivityResponse) -> Vec<v1::JournalEntry> {
        let request = v1::ReleaseRunRequest {
            run_id: run.run_id.clone(),
            lease_epoch: run.lease_epoch,
            ..Default::default()
        };
        self.rpc.clone().release_run(request).await.expect("a held run can be given back");
        self.poll(5_000).await.expect("it is ready again").journal
    }

    pub async fn complete_step(
        &self,
        run: &v1::PollActivityResponse,
        step: &str,
        output: &str,
    ) -> Result<v1::CompleteStepResponse, Status> {
        let request = v1::CompleteStepRequest {
            run_id: run.run_id.clone(),
            step_id: step.into(),
            output: output.to_owned().into(),
            lease_epoch: run.lease_epoch,
            ..Default::default()
        };
        Ok(self.rpc.clone().complete_step(request).await?.into_inner())
    }

    pub async fn complete(&self, run: &v1::PollActivityResponse, output: &str) -> Result<(), Status> {
        let request = v1::CompleteWorkflowRequest {
            run_id: run.run_id.clone(),
            output: output.to_owned().into(),
            lease_epoch: run.lease_epoch,
            ..Default::default()
        };
        self.rpc.clone().complete_workflow(request).await.map(|_| ())
    }
}
