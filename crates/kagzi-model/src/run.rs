//! The run: one execution of a workflow, and where it stands.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    Failure, Labels, Millis, Name, Parked, Reason, RetryPolicy, RunId, Status, Timestamp, Wait, Wake,
    WorkerId, codes, family::Parent, schedule::ScheduledBy,
};

/// The state of one run, without its payloads (they live in its events).
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub namespace: Name,
    pub id: RunId,
    /// The caller's own name for the run, if it was given one; unique in the namespace.
    pub business_id: Option<Name>,
    pub workflow_type: Name,
    pub task_queue: Name,
    pub state: State,
    /// Rises with every write of the row, so that a writer with an old copy is noticed.
    pub version: u64,
    /// Rises with every lease; a worker's write must name the current one.
    pub epoch: u64,
    /// Failed executions of the run that count as attempts.
    pub attempts: u32,
    /// How often a worker was given the run.
    pub dispatch_count: u32,
    /// Leases in a row that ended with a lost worker and no progress.
    pub crashes: u32,
    /// How often it began from the top with an input of its own, from 1; it rises when the run continues in
    /// place.
    pub generation: u32,
    /// The event with which this generation begins.
    pub first_seq: u64,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub deadline_at: Option<Timestamp>,
    /// Set on ended runs: children are left that must be closed, and it is time to go on with that.
    pub close_at: Option<Timestamp>,
    /// Never changes, and a run is copied with every decision.
    pub options: Arc<RunOptions>,
    pub labels: Labels,
}

/// What the caller asked for beyond the defaults.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunOptions {
    #[serde(default)]
    pub retry: RetryPolicy,
    #[serde(default)]
    pub timeouts: Timeouts,
    /// Asks for retries of the whole run when its function fails; its recorded steps stay recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_retry: Option<RetryPolicy>,
    /// Is started when the run fails or times out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// Set on failure handlers: the run whose failure they handle. They start no handlers themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler_of: Option<RunId>,
    /// Set on runs that another run started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The trace that the run belongs to: the W3C `traceparent` of whatever started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Name>,
    /// Set on runs that a schedule started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled: Option<ScheduledBy>,
    /// No worker is given the run before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Timestamp>,
    /// The caller's own name for the request that started it: sent twice, it is carried out once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Name>,
    /// What the start does when another run has its business id. Of no use afterwards, so it is not stored.
    #[serde(skip)]
    pub reuse: IdReuse,
}

/// What a start does when another run has its business id already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IdReuse {
    /// It answers with that run; another type, queue or input is a conflict.
    #[default]
    Attach,
    /// It is refused.
    Reject,
    /// It makes a new run when that one failed, timed out or was cancelled; else it attaches.
    AfterFailure,
    /// It makes a new run when that one has ended; else it attaches.
    AfterEnd,
}

/// A failure handler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnFailure {
    pub workflow_type: Name,
    /// The failed run's own queue when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_queue: Option<Name>,
}

/// Limits on time; unset ones are inherited from the server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_to_close_ms: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_ms: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_ms: Option<Millis>,
}

/// Where a run stands. The non-terminal variants are its *reason to wake*: exactly one, always stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum State {
    /// Waits for a worker.
    Ready {
        since: Timestamp,
    },
    /// A worker executes it.
    Leased(Lease),
    /// Waits for a person.
    Paused {
        by: Name,
        why: String,
        since: Timestamp,
    },
    Completed,
    Failed {
        failure: Failure,
    },
    Cancelled {
        reason: String,
    },
    TimedOut {
        failure: Failure,
    },
    /// Parked: nothing happens before what it waits for. Stored under the wait's own reason.
    #[serde(untagged)]
    Waiting(Box<Parked>),
}

/// A worker's right to write to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub worker: WorkerId,
    pub since: Timestamp,
    pub until: Timestamp,
    /// The earliest start-to-close timeout of a step that is known to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_timeout_at: Option<Timestamp>,
}

impl State {
    /// The published status: a living run's follows from its reason to wake.
    pub fn status(&self) -> Status {
        match self {
            State::Completed => Status::Completed,
            State::Failed { .. } => Status::Failed,
            State::Cancelled { .. } => Status::Cancelled,
            State::TimedOut { .. } => Status::TimedOut,
            State::Ready { .. } => Reason::Ready.status(),
            State::Leased(_) => Reason::Leased.status(),
            State::Waiting(parked) => parked.wait.status(),
            State::Paused { .. } => Reason::Paused.status(),
        }
    }

    /// The reason to wake; none for a finished run.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            State::Ready { .. } => Some(Reason::Ready),
            State::Leased(_) => Some(Reason::Leased),
            State::Waiting(parked) => Some(parked.wait.reason()),
            State::Paused { .. } => Some(Reason::Paused),
            State::Completed | State::Failed { .. } | State::Cancelled { .. } | State::TimedOut { .. } => {
                None
            }
        }
    }

    /// The failure that ended the run, or after which it waits for its next attempt.
    pub fn last_failure(&self) -> Option<&Failure> {
        match self {
            State::Failed { failure } | State::TimedOut { failure } => Some(failure),
            State::Waiting(parked) => parked.wait.failure(),
            State::Ready { .. } | State::Leased(_) | State::Paused { .. } => None,
            State::Completed | State::Cancelled { .. } => None,
        }
    }

    /// What a parked run waits for.
    pub fn parked(&self) -> Option<&Parked> {
        match self {
            State::Waiting(parked) => Some(parked),
            State::Ready { .. } | State::Leased(_) | State::Paused { .. } => None,
            State::Completed | State::Failed { .. } | State::Cancelled { .. } | State::TimedOut { .. } => {
                None
            }
        }
    }

    /// The run sleeps in this step.
    pub fn timer(step: Name, at: Timestamp) -> State {
        State::waiting(Some(step), 0, Some(at), Wait::Timer { until: at })
    }

    /// The run waits for its next attempt, or for that of a step.
    pub fn retry(step: Option<Name>, attempt: u32, at: Timestamp, failure: Failure) -> State {
        State::waiting(step, attempt, Some(at), Wait::Retry { at, failure })
    }

    /// The run waits in this step, and goes on by itself at this time.
    pub fn waiting(step: Option<Name>, attempt: u32, at: Option<Timestamp>, wait: Wait) -> State {
        State::Waiting(Box::new(Parked {
            step,
            attempt,
            at,
            wait,
            since: None,
            others: 0,
            wake: Wake::First,
        }))
    }

    /// The code of [`last_failure`](State::last_failure), by which runs are found.
    pub fn error_code(&self) -> Option<&Name> {
        self.last_failure().map(|failure| &failure.code)
    }

    /// Ended for good: nothing may change any more.
    pub fn finished(&self) -> bool {
        self.reason().is_none()
    }
}

impl Run {
    /// When a worker may claim the run: the one rule behind every claim.
    pub fn due_at(&self) -> Option<Timestamp> {
        match &self.state {
            State::Ready { since } => Some(*since),
            State::Waiting(parked) => parked.at,
            State::Leased(_) | State::Paused { .. } => None,
            State::Completed | State::Failed { .. } | State::Cancelled { .. } | State::TimedOut { .. } => {
                None
            }
        }
    }

    /// When the server must act by itself: a step times out, the lease runs out or the deadline passes,
    /// whichever is first. Of an ended run: when its children are closed.
    pub fn sweep_at(&self) -> Option<Timestamp> {
        if self.state.finished() {
            return self.close_at;
        }
        let lease = self.lease();
        let step = lease.and_then(|lease| lease.step_timeout_at);
        [lease.map(|lease| lease.until), step, self.deadline_at].into_iter().flatten().min()
    }

    /// What people call the run: its business id, or its run id where nobody chose one. For the edge, which
    /// shows it; it formats.
    pub fn shown_id(&self) -> String {
        match &self.business_id {
            Some(chosen) => chosen.to_string(),
            None => self.id.to_string(),
        }
    }

    /// The schedule that started the run, if one did.
    pub fn schedule(&self) -> Option<&Name> {
        self.options.scheduled.as_ref().map(|by| &by.schedule)
    }

    /// The lease, if a worker holds one.
    pub fn lease(&self) -> Option<&Lease> {
        match &self.state {
            State::Leased(lease) => Some(lease),
            State::Ready { .. } | State::Waiting(_) | State::Paused { .. } => None,
            State::Completed | State::Failed { .. } | State::Cancelled { .. } | State::TimedOut { .. } => {
                None
            }
        }
    }

    /// A failure handler is owed: the run ended badly, or was quarantined.
    pub fn needs_handler(&self) -> bool {
        match &self.state {
            State::Failed { .. } | State::TimedOut { .. } => true,
            State::Paused { by, .. } => **by == *"quarantine",
            State::Ready { .. } | State::Leased(_) | State::Waiting(_) => false,
            State::Completed | State::Cancelled { .. } => false,
        }
    }

    /// What a failure handler of the run is told: what made it end badly, or why it was quarantined. None for
    /// a run that owes nobody a handler, perhaps because it went on meanwhile.
    pub fn handled_failure(&self) -> Option<Failure> {
        match &self.state {
            State::Paused { why, .. } if self.needs_handler() => Some(Failure::new(codes::QUARANTINED, why)),
            State::Failed { failure } | State::TimedOut { failure } => Some(failure.clone()),
            State::Ready { .. } | State::Leased(_) | State::Waiting(_) => None,
            State::Paused { .. } | State::Completed | State::Cancelled { .. } => None,
        }
    }

    /// What made the run end badly, if it did.
    pub fn failure(&self) -> Option<&Failure> {
        match &self.state {
            State::Failed { failure } | State::TimedOut { failure } => Some(failure),
            State::Ready { .. } | State::Leased(_) | State::Waiting(_) => None,
            State::Paused { .. } | State::Completed | State::Cancelled { .. } => None,
        }
    }
}
