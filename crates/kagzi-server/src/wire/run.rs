//! A run as clients see it.

use std::collections::HashMap;

use kagzi_model::{Labels, Payload, RetryPolicy, Run, State, Timeouts, USER_LABEL};
use kagzi_proto::v1;

use super::{failure::failure, payload::payload, time::timestamp, words};

pub fn run(run: Run, input: Option<Payload>, output: Option<Payload>) -> v1::WorkflowRun {
    let lease = run.lease().cloned();
    let handler = run.options.on_failure.as_ref();
    v1::WorkflowRun {
        run_id: run.id.to_string(),
        business_id: run.shown_id(),
        namespace_id: run.namespace.to_string(),
        workflow_type: run.workflow_type.to_string(),
        task_queue: run.task_queue.to_string(),
        status: run.state.status() as i32,
        input: input.map(payload),
        output: output.map(payload),
        error: run.state.last_failure().map(failure),
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
        reason: words::wait_reason(run.state.reason()),
        timeouts: timeouts(&run.options.timeouts),
        retry_policy: retry_policy(&run.options.retry),
        run_retry_policy: run.options.run_retry.as_ref().map(set_retry_policy),
        on_failure_workflow: handler.map(|handler| handler.workflow_type.to_string()).unwrap_or_default(),
        on_failure_task_queue: handler
            .and_then(|handler| handler.task_queue.as_deref())
            .unwrap_or_default()
            .to_owned(),
        handler_of: run.options.handler_of.map(|id| id.to_string()).unwrap_or_default(),
        parent_run_id: run.options.parent.as_ref().map(|parent| parent.run.to_string()).unwrap_or_default(),
        status_detail: detail(&run.state),
        user_id: user(&run.labels),
        labels: labels(&run.labels),
        start_at: run.options.start_at.map(timestamp),
        generation: run.generation,
        schedule_id: run.schedule().map(|id| id.to_string()).unwrap_or_default(),
        scheduled_at: run.options.scheduled.as_ref().map(|by| timestamp(by.at)),
    }
}

/// For whom a run is: a label that only the server may set.
pub fn user(labels: &Labels) -> String {
    labels.get(USER_LABEL).map(|user| user.to_string()).unwrap_or_default()
}

/// All labels but that one.
pub fn labels(labels: &Labels) -> HashMap<String, String> {
    let own = labels.iter().filter(|(name, _)| name[..] != *USER_LABEL);
    own.map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// Why it is paused, cancelled or retrying, for people.
fn detail(state: &State) -> String {
    match state {
        State::Paused { by, why, .. } => format!("{by}: {why}"),
        State::Cancelled { reason } => reason.clone(),
        State::Waiting(parked) => match (parked.wait.failure(), &parked.step) {
            (Some(failure), Some(step)) => {
                format!("attempt {} of step '{step}' failed: {}", parked.attempt, failure.message)
            }
            (Some(failure), None) => failure.message.clone(),
            (None, _) => String::new(),
        },
        State::Ready { .. } | State::Leased(_) => String::new(),
        State::Completed | State::Failed { .. } | State::TimedOut { .. } => String::new(),
    }
}

pub fn timeouts(set: &Timeouts) -> Option<v1::TimeoutConfig> {
    let seconds = |ms: i64| (ms / 1000).cast_unsigned();
    (*set != Timeouts::default()).then(|| v1::TimeoutConfig {
        start_to_close_timeout_seconds: set.start_to_close_ms.map(seconds),
        heartbeat_timeout_seconds: set.heartbeat_ms.map(seconds),
        execution_timeout_seconds: set.execution_ms.map(seconds),
    })
}

/// A policy that sets nothing is left out; for run-level retries that would mean "none", so those are always
/// told.
pub fn retry_policy(set: &RetryPolicy) -> Option<v1::RetryPolicy> {
    (*set != RetryPolicy::default()).then(|| set_retry_policy(set))
}

pub fn set_retry_policy(set: &RetryPolicy) -> v1::RetryPolicy {
    v1::RetryPolicy {
        maximum_attempts: set.maximum_attempts,
        initial_interval_ms: set.initial_interval_ms,
        backoff_coefficient: set.backoff_coefficient,
        maximum_interval_ms: set.maximum_interval_ms,
        non_retryable_errors: set.non_retryable_errors.clone(),
        retryable_errors: set.retryable_errors.clone(),
        backoff: set.backoff.map_or(0, |set| set.number().into()),
        jitter: set.jitter,
        schedule_ms: set.schedule_ms.clone(),
        retry_timeout_ms: set.retry_timeout_ms,
        run_retries_max: set.run_retries_max,
        run_retry_budget_ms: set.run_retry_budget_ms,
        preset: 0,
    }
}
