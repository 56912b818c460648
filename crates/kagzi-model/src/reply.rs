//! What the sender of an accepted command is told.

use crate::{Failure, Finality, RunId, Status, Timestamp};

/// The answer to an accepted command.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The run exists; `existed` when it did before.
    Started { run: RunId, existed: bool },
    /// The run is leased under this epoch.
    Leased { epoch: u64 },
    /// What to do about a step.
    Begin(BeginAnswer),
    /// Done; `already` when it had been done before and nothing was written.
    Done { already: bool },
    /// The attempt failed and is retried at `at`.
    StepRetry { at: Timestamp, attempt: u32 },
    /// The step failed for good after this many attempts.
    StepFinal { attempts: u32, finality: Finality },
    /// The sleep lasts until `until`.
    Sleeping { until: Timestamp },
    /// The run stands at this status; `already` when it did before.
    Stands { status: Status, already: bool },
    /// The function failed; the run is executed again at `at`, or has ended.
    RunFailed { retry_at: Option<Timestamp> },
    /// The lost run goes on at `at`, or is paused.
    Orphaned { at: Option<Timestamp> },
}

/// Whether a step must run.
#[derive(Debug, Clone, PartialEq)]
pub enum BeginAnswer {
    /// Run it; this is the number of the attempt.
    Execute { attempt: u32 },
    /// It has a result: read it from the journal.
    Recorded,
    /// It failed for good.
    Failed { failure: Failure, attempts: u32, finality: Finality },
    /// Its next attempt may begin at `at`.
    NotReady { at: Timestamp },
}
