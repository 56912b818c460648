//! Why a command is refused. The caller asked for the impossible; nothing was written.

use crate::{Name, RunId, Status};

/// A refused command, in words for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    #[error(
        "there is no run {run} in namespace '{namespace}'; list them with: kagzi --namespace {namespace} \
         run list"
    )]
    NotFound { run: RunId, namespace: Name },

    #[error("lease lost: run {run} is at epoch {current}, the write names epoch {named}")]
    StaleEpoch { run: RunId, named: u64, current: u64 },

    #[error("lease lost: run {run} is not leased any more, it is {status}", status = status.name())]
    NotLeased { run: RunId, status: Status },

    #[error("run {run} has already ended as {status}", status = status.name())]
    Ended { run: RunId, status: Status },

    #[error(
        "business id '{business_id}' already names run {run}, which was started with another {what}; \
         use another id, or start with the same {what}"
    )]
    Conflict { business_id: Name, run: RunId, what: &'static str },

    #[error(
        "business id '{business_id}' already names run {run}, which is {status}; use another id, or another \
         policy \
         for its reuse", status = status.name()
    )]
    Taken { business_id: Name, run: RunId, status: Status },

    #[error(
        "recorded '{recorded}' at position {position}, got '{got}': the code no longer matches the record"
    )]
    StepMismatch { recorded: Name, got: Name, position: u32 },

    #[error("step '{step}' was already recorded with another outcome")]
    StepDecided { step: Name },

    #[error("step '{step}' is not known to run {run}")]
    StepUnknown { run: RunId, step: Name },

    #[error("run {run} has {count} recorded steps, at most {max} are allowed; split it")]
    TooManySteps { run: RunId, count: usize, max: usize },

    #[error(
        "the history of run {run} holds {bytes} bytes of payloads, at most {max} are allowed; split it, or \
             keep large data elsewhere"
    )]
    HistoryTooLarge { run: RunId, bytes: u64, max: u64 },

    #[error("run {run} has {max} labels, the most that are allowed; '{name}' would be one more")]
    TooManyLabels { run: RunId, name: Name, max: usize },

    #[error(
        "run {run} takes nothing more on channel '{channel}': its code has closed it; start another run, or \
         use another channel"
    )]
    ChannelClosed { run: RunId, channel: Name },

    #[error(
        "run {run} has {max} signals that it has not taken, the most that are kept; send this one again \
         when it has read some"
    )]
    TooManySignals { run: RunId, max: usize },

    #[error(
        "run {run} waits for {max} things at once, the most that are allowed; wait for fewer, or split it"
    )]
    TooManyWaits { run: RunId, max: usize },

    #[error(
        "run {run} has no promise '{name}' that this opens; see what it waits for with: kagzi run why {run}"
    )]
    PromiseUnknown { run: RunId, name: Name },

    #[error("run {run} has a promise '{name}' already: names of promises are unique in a run")]
    PromiseExists { run: RunId, name: Name },

    #[error("run {run} has {max} values, the most that are allowed; '{name}' would be one more")]
    TooManyValues { run: RunId, name: Name, max: usize },

    #[error("run {run} has started {max} runs, the most that are allowed; split it, or continue it in place")]
    TooManyChildren { run: RunId, max: usize },

    #[error("run {run} has {max} runs above it, the most that are allowed; it cannot start another")]
    LineageTooDeep { run: RunId, max: u32 },

    #[error("run {run} is not due")]
    NotDue { run: RunId },

    #[error("run {run} is {status}, only a PAUSED or retrying run can be resumed", status = status.name())]
    NotResumable { run: RunId, status: Status },

    #[error("run {run} is {status}, only one that ended FAILED, TIMED_OUT or CANCELLED can be \
             retried", status = status.name())]
    NotReopenable { run: RunId, status: Status },

    #[error(
        "run {run} cannot go on from step '{step}': it has not failed for good, or more than failures was \
         recorded \
         after it; start a new run instead: kagzi run restart {run}"
    )]
    NotForgivable { run: RunId, step: Name },

    #[error("there is no namespace '{namespace}'; create it with: kagzi ns create {namespace}")]
    NamespaceUnknown { namespace: Name },

    #[error(
        "namespace '{namespace}' is disabled {why}; it takes no new runs until: kagzi ns enable {namespace}"
    )]
    NamespaceDisabled { namespace: Name, why: String },

    #[error("this server cannot read run {run} and leaves it alone: {why}; see: kagzi doctor")]
    Unreadable { run: RunId, why: String },

    #[error("the database refuses what this request would write: {why}; send another one")]
    NotStorable { why: String },
}

impl Rejection {
    /// The sender has lost the run and must stop executing it.
    pub fn lease_lost(&self) -> bool {
        match self {
            Rejection::StaleEpoch { .. }
            | Rejection::NotLeased { .. }
            | Rejection::Ended { .. }
            | Rejection::NotFound { .. } => true,
            Rejection::Conflict { .. }
            | Rejection::Taken { .. }
            | Rejection::StepMismatch { .. }
            | Rejection::StepDecided { .. }
            | Rejection::StepUnknown { .. }
            | Rejection::TooManySteps { .. }
            | Rejection::HistoryTooLarge { .. }
            | Rejection::TooManyLabels { .. }
            | Rejection::ChannelClosed { .. }
            | Rejection::TooManySignals { .. }
            | Rejection::TooManyWaits { .. }
            | Rejection::PromiseUnknown { .. }
            | Rejection::PromiseExists { .. }
            | Rejection::TooManyValues { .. }
            | Rejection::TooManyChildren { .. }
            | Rejection::LineageTooDeep { .. }
            | Rejection::NotDue { .. }
            | Rejection::NotResumable { .. }
            | Rejection::NotReopenable { .. }
            | Rejection::NotForgivable { .. }
            | Rejection::NamespaceUnknown { .. }
            | Rejection::NamespaceDisabled { .. }
            | Rejection::Unreadable { .. }
            | Rejection::NotStorable { .. } => false,
        }
    }
}
