//! Commands: requests to change one run, as plain data. Each is safe to send twice.

use crate::{Failure, Labels, Millis, Name, Payload, RetryPolicy, RunId, RunOptions, Timestamp, WorkerId};

/// Names a run and the lease under which a worker writes to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRef {
    pub namespace: Name,
    pub run: RunId,
    pub epoch: u64,
}

/// Names a step: its path is its identity, its position detects changed code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRef {
    pub path: Name,
    pub position: u32,
}

/// A step's result, recorded together with the end of its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepResult {
    pub step: StepRef,
    pub attempt: u32,
    pub result: Payload,
    pub elapsed_ms: Millis,
}

/// A new run.
#[derive(Debug, Clone, PartialEq)]
pub struct StartRun {
    pub namespace: Name,
    pub id: RunId,
    pub business_id: Name,
    pub workflow_type: Name,
    pub task_queue: Name,
    pub input: Payload,
    pub deadline_at: Option<Timestamp>,
    pub options: RunOptions,
    pub labels: Labels,
}

impl Command {
    /// Bytes of the payloads that it carries, for whoever bounds what may wait.
    pub fn payload_bytes(&self) -> usize {
        match self {
            Command::Start(start) => start.input.data.len(),
            Command::Progress { progress, .. } => progress.data.len(),
            Command::RecordStep { result, .. } => result.data.len(),
            Command::RecordSteps { steps, .. } => result_bytes(steps),
            Command::Complete { steps, output, .. } => output.data.len() + result_bytes(steps),
            Command::Lease { .. }
            | Command::BeginStep { .. }
            | Command::CloseStep { .. }
            | Command::FailStep { .. }
            | Command::Sleep { .. }
            | Command::SleepOver { .. }
            | Command::SetLabel { .. }
            | Command::Fail { .. }
            | Command::Park { .. }
            | Command::Release { .. }
            | Command::Block { .. }
            | Command::Renew { .. }
            | Command::Orphan { .. }
            | Command::Expire { .. }
            | Command::Cancel { .. }
            | Command::Terminate { .. }
            | Command::Resume { .. }
            | Command::Reopen { .. }
            | Command::NoteHandler { .. } => 0,
        }
    }
}

fn result_bytes(steps: &[StepResult]) -> usize {
    steps.iter().map(|step| step.result.data.len()).sum()
}

impl StartRun {
    /// The caller chose a business id. Without one, the run's id stands in its place.
    pub fn has_business_id(&self) -> bool {
        let mut text = uuid::Uuid::encode_buffer();
        *self.business_id != *self.id.0.hyphenated().encode_lower(&mut text)
    }
}

/// One request. Each variant's rule is the file of the same name under `decide/`.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Creates a run, unless the business id is taken.
    Start(Box<StartRun>),
    /// Gives a due run to a worker, under a new epoch.
    Lease { namespace: Name, run: RunId, worker: WorkerId, until: Timestamp },
    /// Asks whether a step must run, and notes that it begins.
    BeginStep { lease: LeaseRef, step: StepRef, timeout_ms: Option<Millis>, policy: RetryPolicy },
    /// Notes how far a long step is.
    Progress { lease: LeaseRef, step: StepRef, progress: Payload },
    /// Records a step's result.
    RecordStep { lease: LeaseRef, step: StepRef, attempt: u32, result: Payload, elapsed_ms: Millis },
    /// Records several results together, in this order.
    RecordSteps { lease: LeaseRef, steps: Vec<StepResult> },
    /// The code dropped a step that the record knows to run.
    CloseStep { lease: LeaseRef, step: StepRef },
    /// Records a failed attempt and decides on the next; with `park` the lease ends when there is one.
    FailStep {
        lease: LeaseRef,
        step: StepRef,
        attempt: u32,
        failure: Failure,
        policy: RetryPolicy,
        elapsed_ms: Millis,
        park: bool,
    },
    /// Begins a sleep; with `park` the lease ends unless it is over already.
    Sleep { lease: LeaseRef, step: StepRef, duration_ms: Millis, park: bool },
    /// A sleep ended while the worker still held the run.
    SleepOver { lease: LeaseRef, step: Name },
    /// Sets a label of the run; the call has a step's identity.
    SetLabel { lease: LeaseRef, step: StepRef, name: Name, value: Name },
    /// Ends the run with its output and the results that were not recorded before.
    Complete { lease: LeaseRef, steps: Vec<StepResult>, output: Payload },
    /// Ends the run with an error: that of `step`, if the function returned the error of a step.
    Fail { lease: LeaseRef, failure: Failure, step: Option<Name> },
    /// Ends the lease until the earliest of the retries and sleeps in `waits` is due; unfinished steps that are not
    /// among them are closed. Empty: until the earliest of all, from workers that cannot say what they wait for.
    Park { lease: LeaseRef, waits: Vec<Name> },
    /// Gives the run back at no charge. The more often that happens without progress, the longer it waits.
    Release { lease: LeaseRef, why: String },
    /// Pauses the run because code and record disagree.
    Block { lease: LeaseRef, message: String },
    /// Keeps the lease until `until`.
    Renew { lease: LeaseRef, until: Timestamp },
    /// Takes the lease of a lost worker away.
    Orphan { namespace: Name, run: RunId, epoch: u64, loss: Loss },
    /// Acts on a passed deadline or a lease that ran out. `losses_max` as in [`Loss`].
    Expire { namespace: Name, run: RunId, losses_max: u32 },
    /// Ends the run because somebody asked.
    Cancel { namespace: Name, run: RunId, reason: String },
    /// Ends the run as FAILED because an operator said so.
    Terminate { namespace: Name, run: RunId, reason: String },
    /// Lets a paused or retrying run go on now.
    Resume { namespace: Name, run: RunId, request: Option<Name> },
    /// Lets an ended run go on from its failed step, or from an earlier one that failed. A `request` that was carried
    /// out before is recognised.
    Reopen { namespace: Name, run: RunId, from: Option<Name>, request: Option<Name> },
    /// Notes on a failed run that its handler ended.
    NoteHandler { namespace: Name, run: RunId, handler: RunId, outcome: String },
}

/// How a worker was lost, and how often in a row a run may lose one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Its connection broke a moment ago, and it did not come back. It may still live: a run that would not be executed
    /// again stays with it until it has been silent for long enough.
    pub cut_off: bool,
    /// The run is quarantined when it loses its worker this often in a row without progress.
    pub losses_max: u32,
}

impl Command {
    /// The run it is about.
    pub fn run(&self) -> RunId {
        match self {
            Command::Start(start) => start.id,
            Command::BeginStep { lease, .. }
            | Command::Progress { lease, .. }
            | Command::RecordStep { lease, .. }
            | Command::RecordSteps { lease, .. }
            | Command::CloseStep { lease, .. }
            | Command::FailStep { lease, .. }
            | Command::Sleep { lease, .. }
            | Command::SleepOver { lease, .. }
            | Command::SetLabel { lease, .. }
            | Command::Complete { lease, .. }
            | Command::Fail { lease, .. }
            | Command::Park { lease, .. }
            | Command::Release { lease, .. }
            | Command::Block { lease, .. }
            | Command::Renew { lease, .. } => lease.run,
            Command::Lease { run, .. }
            | Command::Orphan { run, .. }
            | Command::Expire { run, .. }
            | Command::Cancel { run, .. }
            | Command::Terminate { run, .. }
            | Command::Resume { run, .. }
            | Command::Reopen { run, .. }
            | Command::NoteHandler { run, .. } => *run,
        }
    }

    /// The namespace it is about; nothing ever crosses one.
    pub fn namespace(&self) -> &Name {
        match self {
            Command::Start(start) => &start.namespace,
            Command::BeginStep { lease, .. }
            | Command::Progress { lease, .. }
            | Command::RecordStep { lease, .. }
            | Command::RecordSteps { lease, .. }
            | Command::CloseStep { lease, .. }
            | Command::FailStep { lease, .. }
            | Command::Sleep { lease, .. }
            | Command::SleepOver { lease, .. }
            | Command::SetLabel { lease, .. }
            | Command::Complete { lease, .. }
            | Command::Fail { lease, .. }
            | Command::Park { lease, .. }
            | Command::Release { lease, .. }
            | Command::Block { lease, .. }
            | Command::Renew { lease, .. } => &lease.namespace,
            Command::Lease { namespace, .. }
            | Command::Orphan { namespace, .. }
            | Command::Expire { namespace, .. }
            | Command::Cancel { namespace, .. }
            | Command::Terminate { namespace, .. }
            | Command::Resume { namespace, .. }
            | Command::Reopen { namespace, .. }
            | Command::NoteHandler { namespace, .. } => namespace,
        }
    }
}
