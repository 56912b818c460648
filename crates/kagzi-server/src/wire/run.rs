//! A run as clients see it.

use kagzi_model::{Payload, RetryPolicy, Run, Timeouts};
use kagzi_proto::v1;

use super::{failure::failure, payload::payload, time::timestamp};

pub fn run(run: Run, input: Option<Payload>, output: Option<Payload>) -> v1::WorkflowRun {
    let lease = run.lease().cloned();
    v1::WorkflowRun {
        run_id: run.id.to_string(),
        business_id: run.business_id.to_string(),
        namespace_id: run.namespace.to_string(),
        workflow_type: run.workflow_type.to_string(),
        task_queue: run.task_queue.to_string(),
        status: run.state.status() as i32,
        input: input.map(payload),
        output: output.map(payload),
        error: run.failure().map(failure),
        attempts: run.attempts,
        dispatch_count: run.dispatch_count,
        wake_up_at: run.due_at().map(timestamp),
        locked_by: lease.as_ref().map(|lease| lease.worker.to_string()).unwrap_or_default(),
        locked_until: lease.map(|lease| timestamp(lease.until)),
        lease_epoch: run.epoch,
        created_at: Some(timestamp(run.created_at)),
        started_at: run.started_at.map(timestamp),
        finished_at: run.finished_at.map(timestamp),
        deadline_at: run.deadline_at.map(timestamp),
        reason: run.state.reason().unwrap_or_default().to_owned(),
        timeouts: timeouts(&run.options.timeouts),
        retry_policy: retry_policy(&run.options.retry),
        on_failure_workflow: String::new(),
        on_failure_task_queue: String::new(),
    }
}

fn timeouts(set: &Timeouts) -> Option<v1::TimeoutConfig> {
    let seconds = |ms: i64| (ms / 1000).cast_unsigned();
    (*set != Timeouts::default()).then(|| v1::TimeoutConfig {
        start_to_close_timeout_seconds: set.start_to_close_ms.map(seconds),
        heartbeat_timeout_seconds: set.heartbeat_ms.map(seconds),
        execution_timeout_seconds: set.execution_ms.map(seconds),
    })
}

fn retry_policy(set: &RetryPolicy) -> Option<v1::RetryPolicy> {
    (*set != RetryPolicy::default()).then(|| v1::RetryPolicy {
        maximum_attempts: set.maximum_attempts,
        initial_interval_ms: set.initial_interval_ms,
        backoff_coefficient: set.backoff_coefficient,
        maximum_interval_ms: set.maximum_interval_ms,
        non_retryable_errors: set.non_retryable_errors.clone(),
    })
}
