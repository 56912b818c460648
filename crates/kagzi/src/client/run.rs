//! A run as clients see it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use kagzi_proto::v1;
use serde::de::DeserializeOwned;

use crate::absent::{always, at, text};
use crate::client::start::Timeouts;
use crate::error::Error;
use crate::payload::{self, Payload};
use crate::retry_policy::RetryPolicy;
use crate::status::published;
use crate::step_error::StepFailure;

/// A run as it was when it was read.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Run {
    /// Its id.
    pub run_id: String,
    /// Your name for it, where it has one.
    pub business_id: Option<String>,
    /// Its namespace.
    pub namespace: String,
    /// Which function executes it.
    pub workflow_type: String,
    /// Which workers execute it.
    pub task_queue: String,
    /// Where it stands.
    pub status: RunStatus,
    /// What it waits for; none when it has ended.
    pub reason: Option<Reason>,
    /// Why it is paused, cancelled or retrying, for people; or empty.
    pub status_detail: String,
    /// What it was started with, or what it continued with. Lists leave it out.
    pub input: Option<Payload>,
    /// What it returned. Lists leave it out.
    pub output: Option<Payload>,
    /// What ended it, or after what it waits for its next attempt.
    pub error: Option<StepFailure>,
    /// Executions of the function that failed.
    pub attempts: u32,
    /// How often a worker was given the run.
    pub dispatch_count: u32,
    /// How often it began from the top with an input of its own, from 1: it rises when the run continues in
    /// place.
    pub generation: u32,
    /// When its sleep or its retry is over.
    pub wake_up_at: Option<SystemTime>,
    /// The worker that executes it.
    pub worker_id: Option<String>,
    /// Until when that worker has it, unless it says that it lives.
    pub leased_until: Option<SystemTime>,
    /// Rises with every worker that is given the run.
    pub lease_epoch: u64,
    /// When it was started by its client.
    pub created_at: SystemTime,
    /// When a worker was first given it.
    pub started_at: Option<SystemTime>,
    /// When it ended.
    pub finished_at: Option<SystemTime>,
    /// When it ends as TIMED_OUT.
    pub deadline_at: Option<SystemTime>,
    /// Its limits on time.
    pub timeouts: Timeouts,
    /// How its steps are retried, where they do not say otherwise.
    pub retry_policy: RetryPolicy,
    /// How the whole run is retried; none = it is not.
    pub run_retry_policy: Option<RetryPolicy>,
    /// The workflow type that is started when it fails.
    pub on_failure: Option<String>,
    /// The queue of that handler.
    pub on_failure_queue: Option<String>,
    /// Of a failure handler: the run whose failure it handles.
    pub handler_of: Option<String>,
    /// The run that started it, if one did.
    pub parent_run_id: Option<String>,
    /// Set at the start and by the workflow.
    pub labels: BTreeMap<String, String>,
    /// For whom it is.
    pub user_id: Option<String>,
    /// It was not to start before.
    pub start_at: Option<SystemTime>,
    /// The schedule that started it.
    pub schedule_id: Option<String>,
    /// The nominal time of a scheduled run.
    pub scheduled_at: Option<SystemTime>,
}

macro_rules! run_status {
    ($($declared:tt)+) => {
        published! {
            /// Where a run stands.
            RunStatus $($declared)+
        }
    };
}
kagzi_catalogue::statuses!(run_status);

macro_rules! reason {
    ($($variant:ident $name:literal $status:ident $means:literal)+) => {
        /// What a run that has not ended waits for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Reason {
            $(#[doc = $means] $variant,)+
            /// A server that can read it: this one cannot, and leaves it alone.
            Unreadable,
            /// Something that only a newer server knows.
            Unknown,
        }

        impl Reason {
            /// Every reason by which runs can be listed.
            pub const ALL: [Reason; [$($name),+].len()] = [$(Reason::$variant),+];

            /// The word for it, e.g. `timer`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Reason::$variant => $name,)+
                    Reason::Unreadable => "unreadable",
                    Reason::Unknown => "unknown",
                }
            }
        }
    };
}
kagzi_catalogue::reasons_to_wake!(reason);

impl Run {
    /// What it was started with. Lists leave it out; ask for the run itself.
    ///
    /// ```no_run
    /// # async fn look(client: kagzi::Client) -> Result<(), kagzi::Error> {
    /// let run = client.get_by_id("order-42").await?;
    /// let cents: u64 = run.input()?;
    /// if run.status.has_ended() {
    ///     println!("{cents} cents: {}", run.output::<String>()?);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn input<T: DeserializeOwned>(&self) -> Result<T, Error> {
        decode(self.input.as_ref(), "the run's input")
    }

    /// What it returned.
    pub fn output<T: DeserializeOwned>(&self) -> Result<T, Error> {
        decode(self.output.as_ref(), "the run's output")
    }

    pub(crate) fn from_proto(run: v1::WorkflowRun) -> Run {
        Run {
            status: RunStatus::from_wire(run.status),
            reason: Reason::from_wire(run.reason),
            business_id: text(run.business_id),
            namespace: run.namespace_id,
            workflow_type: run.workflow_type,
            task_queue: run.task_queue,
            status_detail: run.status_detail,
            input: run.input.map(Payload::from_proto),
            output: run.output.map(Payload::from_proto),
            error: run.error.map(StepFailure::from_proto),
            attempts: run.attempts,
            dispatch_count: run.dispatch_count,
            wake_up_at: at(run.wake_up_at),
            worker_id: text(run.locked_by),
            leased_until: at(run.locked_until),
            lease_epoch: run.lease_epoch,
            created_at: always(run.created_at),
            started_at: at(run.started_at),
            finished_at: at(run.finished_at),
            deadline_at: at(run.deadline_at),
            timeouts: run.timeouts.map(Timeouts::from_proto).unwrap_or_default(),
            retry_policy: run.retry_policy.map(RetryPolicy::from_proto).unwrap_or_default(),
            run_retry_policy: run.run_retry_policy.map(RetryPolicy::from_proto),
            on_failure: text(run.on_failure_workflow),
            on_failure_queue: text(run.on_failure_task_queue),
            handler_of: text(run.handler_of),
            parent_run_id: text(run.parent_run_id),
            labels: run.labels.into_iter().collect(),
            user_id: text(run.user_id),
            start_at: at(run.start_at),
            schedule_id: text(run.schedule_id),
            generation: run.generation.max(1),
            scheduled_at: at(run.scheduled_at),
            run_id: run.run_id,
        }
    }
}

/// An empty run, for tests of programs that show runs.
impl Default for Run {
    fn default() -> Run {
        Run::from_proto(v1::WorkflowRun { status: v1::WorkflowStatus::Pending.into(), ..Default::default() })
    }
}

pub(crate) fn decode<T: DeserializeOwned>(
    from: Option<&impl payload::Content>,
    what: &'static str,
) -> Result<T, Error> {
    payload::decode(from).map_err(|error| Error::undecodable(what, &error))
}

impl RunStatus {
    /// The run goes on no more, unless an operator reopens it.
    pub fn has_ended(self) -> bool {
        match self {
            RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled | RunStatus::TimedOut => true,
            RunStatus::Pending
            | RunStatus::Running
            | RunStatus::Sleeping
            | RunStatus::Paused
            | RunStatus::Compensating
            | RunStatus::Unknown => false,
        }
    }
}

/// What is said of a run in tests of programs that show runs.
impl Default for RunStatus {
    fn default() -> RunStatus {
        RunStatus::Pending
    }
}

impl Reason {
    /// None for a run that has ended.
    pub(crate) fn from_wire(number: i32) -> Option<Reason> {
        let word = match v1::WaitReason::try_from(number) {
            Ok(v1::WaitReason::Unspecified) => return None,
            Ok(v1::WaitReason::Unreadable) => return Some(Reason::Unreadable),
            Ok(known) => known.word(),
            Err(_) => return Some(Reason::Unknown),
        };
        Some(Reason::ALL.into_iter().find(|reason| reason.name() == word).unwrap_or(Reason::Unknown))
    }

    pub(crate) fn to_wire(self) -> i32 {
        v1::WaitReason::from_word(self.name()).unwrap_or_default().into()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_and_reason_survives_the_wire_and_an_unknown_one_says_so() {
        for status in RunStatus::ALL {
            assert_eq!(RunStatus::from_wire(status.to_wire()), status);
            let wire = v1::WorkflowStatus::try_from(status.to_wire()).unwrap();
            assert_eq!(format!("WORKFLOW_STATUS_{status}"), wire.as_str_name());
        }
        assert_eq!(RunStatus::from_wire(77), RunStatus::Unknown);
        for reason in Reason::ALL {
            assert_eq!(Reason::from_wire(reason.to_wire()), Some(reason));
        }
        assert_eq!(Reason::from_wire(77), Some(Reason::Unknown));
        assert_eq!(Reason::from_wire(0), None);
    }
}
