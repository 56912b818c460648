//! Reports: from the worker's words to commands, and from outcomes to acknowledgements.

use kagzi_engine::Engine;
use kagzi_model::{Command, LeaseRef, Name, Rejection, Reply, RunId, StepResult, Timestamp};
use kagzi_proto::{
    Reason, refusal,
    v1::{self, answer::Body as Said, report::Body},
};
use kagzi_store::Outcome;
use tonic::Status;

use crate::{check, services::limits, status::from_rejection, wire};

/// About what a report weighs beside its payloads.
const REPORT_BYTES: usize = 256;

/// A chunk of reports that the store has answered.
pub struct Committed {
    pub ack: v1::Ack,
    /// How many reports there were, and about how large.
    pub reports: usize,
    pub bytes: usize,
    /// Leases that ended with them.
    pub ended: Vec<(RunId, u64)>,
}

/// About how much memory a report holds.
pub fn bytes(report: &v1::Report) -> usize {
    let payload = |payload: &Option<v1::Payload>| payload.as_ref().map_or(0, |payload| payload.data.len());
    let failure = |failure: &Option<v1::Failure>| failure.as_ref().map_or(0, |it| it.message.len());
    let results = |steps: &[v1::StepRecorded]| {
        steps.iter().map(|step| REPORT_BYTES + payload(&step.result)).sum::<usize>()
    };
    REPORT_BYTES
        + match &report.body {
            Some(Body::StepRecorded(recorded)) => payload(&recorded.result),
            Some(Body::StepProgressed(progressed)) => payload(&progressed.progress),
            Some(Body::StepsRecorded(recorded)) => results(&recorded.steps),
            Some(Body::RunCompleted(completed)) => payload(&completed.output) + results(&completed.steps),
            Some(Body::StepFailed(failed)) => failure(&failed.failure),
            Some(Body::RunFailed(failed)) => failure(&failed.failure),
            Some(
                Body::SleepScheduled(_)
                | Body::StepClosed(_)
                | Body::SleepOver(_)
                | Body::LabelSet(_)
                | Body::RunParked(_)
                | Body::RunReleased(_)
                | Body::RunBlocked(_),
            )
            | None => 0,
        }
}

/// Commits a chunk of reports of so many bytes and answers each. Never fails: what went wrong is part of the answers.
pub async fn commit(engine: Engine, namespace: Name, reports: Vec<v1::Report>, bytes: usize) -> Committed {
    let (len, mut ended) = (reports.len(), Vec::new());
    let mut ack = v1::Ack::default();
    let mut commands = Vec::with_capacity(reports.len());
    let mut seqs = Vec::with_capacity(reports.len());
    for report in reports {
        let seq = report.seq;
        match read(&engine, &namespace, report) {
            Ok(command) => {
                commands.push(command);
                seqs.push(seq);
            }
            Err(status) => {
                ack.answers.push(refuse(seq, &status));
            }
        }
    }
    let kept: Vec<_> = commands.iter().map(lease_and_kind).collect();
    match engine.apply(commands).await {
        Ok(outcomes) => {
            let now = engine.clock().now();
            for ((seq, (lease, kind)), outcome) in seqs.into_iter().zip(kept).zip(outcomes) {
                if kind == Kind::End && outcome.is_ok() {
                    ended.push((lease.run, lease.epoch));
                }
                if let Err(mismatch @ Rejection::StepMismatch { .. }) = &outcome {
                    block(&engine, lease, mismatch).await;
                }
                answer(&mut ack, seq, kind == Kind::Sleep, outcome, now);
            }
        }
        Err(error) => {
            // A report is safe to repeat, so whatever is wrong with the store, the worker sends it again.
            let status = Reason::StoreUnavailable.status(error.to_string());
            ack.answers.extend(seqs.into_iter().map(|seq| refuse(seq, &status)));
        }
    }
    Committed { ack, reports: len, bytes, ended }
}

fn read(engine: &Engine, namespace: &Name, report: v1::Report) -> Result<Command, Status> {
    let lease = check::lease_ref(namespace, report.lease.as_ref())?;
    let step = |step: Option<v1::StepRef>| {
        let named = step.unwrap_or_default();
        check::step(&named.path, named.position)
    };
    let result = |recorded: v1::StepRecorded| {
        Ok::<_, Status>(StepResult {
            step: step(recorded.step)?,
            attempt: recorded.attempt,
            result: check::payload(limits(engine), "result", recorded.result)?,
            elapsed_ms: recorded.elapsed_ms.max(0),
        })
    };
    let Some(body) = report.body else {
        return Err(Reason::MessageInvalid.status("a report without a body"));
    };
    Ok(match body {
        Body::StepRecorded(recorded) => Command::RecordStep {
            lease,
            step: step(recorded.step)?,
            attempt: recorded.attempt,
            result: check::payload(limits(engine), "result", recorded.result)?,
            elapsed_ms: recorded.elapsed_ms.max(0),
        },
        Body::StepFailed(failed) => Command::FailStep {
            lease,
            step: step(failed.step)?,
            attempt: failed.attempt,
            failure: wire::read_failure(failed.failure),
            policy: check::retry_policy(failed.retry_policy)?,
            elapsed_ms: failed.elapsed_ms.max(0),
            park: false,
        },
        Body::StepProgressed(progressed) => Command::Progress {
            lease,
            step: step(progressed.step)?,
            progress: check::payload(limits(engine), "progress", progressed.progress)?,
        },
        Body::SleepScheduled(sleep) => Command::Sleep {
            lease,
            step: step(sleep.step)?,
            duration_ms: check::duration_ms("duration_ms", u64::try_from(sleep.duration_ms).unwrap_or(0))?,
            park: false,
        },
        Body::SleepOver(over) => Command::SleepOver { lease, step: step(over.step)?.path },
        Body::LabelSet(set) => {
            let (name, value) = check::label(&set.name, &set.value)?;
            Command::SetLabel { lease, step: step(set.step)?, name, value }
        }
        Body::StepsRecorded(recorded) => {
            let steps = recorded.steps.into_iter().map(result).collect::<Result<_, _>>()?;
            Command::RecordSteps { lease, steps }
        }
        Body::StepClosed(closed) => Command::CloseStep { lease, step: step(closed.step)? },
        Body::RunCompleted(completed) => {
            let steps = completed.steps.into_iter().map(result).collect::<Result<_, _>>()?;
            let output = check::payload(limits(engine), "output", completed.output)?;
            Command::Complete { lease, steps, output }
        }
        Body::RunFailed(failed) => {
            let step = if failed.step.is_empty() { None } else { Some(check::step(&failed.step, 0)?.path) };
            Command::Fail { lease, failure: wire::read_failure(failed.failure), step }
        }
        Body::RunParked(parked) => {
            let path = |path: &String| Ok::<_, Status>(check::step(path, 0)?.path);
            let waits = parked.waits.iter().map(path).collect::<Result<_, _>>()?;
            Command::Park { lease, waits }
        }
        Body::RunReleased(released) => Command::Release { lease, why: shorten(released.reason) },
        Body::RunBlocked(blocked) => Command::Block { lease, message: shorten(blocked.message) },
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sleep,
    /// It ends the lease.
    End,
    Other,
}

/// What the answer needs of a command after it was handed over.
fn lease_and_kind(command: &Command) -> (LeaseRef, Kind) {
    let lease =
        LeaseRef { namespace: command.namespace().clone(), run: command.run(), epoch: epoch(command) };
    (lease, kind(command))
}

fn kind(command: &Command) -> Kind {
    match command {
        Command::Sleep { .. } => Kind::Sleep,
        Command::Complete { .. }
        | Command::Fail { .. }
        | Command::Park { .. }
        | Command::Release { .. }
        | Command::Block { .. } => Kind::End,
        Command::BeginStep { .. }
        | Command::Progress { .. }
        | Command::RecordStep { .. }
        | Command::RecordSteps { .. }
        | Command::CloseStep { .. }
        | Command::FailStep { .. }
        | Command::SleepOver { .. }
        | Command::SetLabel { .. }
        | Command::Renew { .. }
        | Command::Orphan { .. }
        | Command::Start(_)
        | Command::Lease { .. }
        | Command::Expire { .. }
        | Command::Cancel { .. }
        | Command::Terminate { .. }
        | Command::Resume { .. }
        | Command::Reopen { .. }
        | Command::NoteHandler { .. } => Kind::Other,
    }
}

fn epoch(command: &Command) -> u64 {
    match command {
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
        | Command::Renew { lease, .. } => lease.epoch,
        Command::Orphan { epoch, .. } => *epoch,
        Command::Start(_)
        | Command::Lease { .. }
        | Command::Expire { .. }
        | Command::Cancel { .. }
        | Command::Terminate { .. }
        | Command::Resume { .. }
        | Command::Reopen { .. }
        | Command::NoteHandler { .. } => 0,
    }
}

/// The record contradicts the code: pause the run, so that a person looks instead of a retry loop.
async fn block(engine: &Engine, lease: LeaseRef, mismatch: &Rejection) {
    let (namespace, run) = (lease.namespace.clone(), lease.run);
    let command = Command::Block { lease, message: mismatch.to_string() };
    if let Err(error) = engine.apply_one(command).await {
        tracing::warn!(%namespace, %run, %error, "could not pause a run whose code changed");
    }
}

fn answer(ack: &mut v1::Ack, seq: u64, sleep: bool, outcome: Outcome, now: Timestamp) {
    let said = match outcome {
        Ok(Reply::StepRetry { at, attempt }) => {
            Said::StepRetry(v1::StepRetry { delay_ms: at.remaining_ms(now), attempt })
        }
        Ok(Reply::StepFinal { attempts, finality }) => {
            Said::StepFinal(v1::StepFinal { attempts, finality: finality.name().to_owned() })
        }
        Ok(Reply::Sleeping { until }) => {
            Said::Sleeping(v1::Sleeping { remaining_ms: until.remaining_ms(now) })
        }
        Ok(Reply::Done { .. }) if sleep => Said::Sleeping(v1::Sleeping { remaining_ms: 0 }),
        Ok(
            Reply::Done { .. }
            | Reply::Started { .. }
            | Reply::Leased { .. }
            | Reply::Begin(_)
            | Reply::Stands { .. }
            | Reply::RunFailed { .. }
            | Reply::Orphaned { .. },
        ) => return ack.committed.push(seq),
        Err(rejection) => return ack.answers.push(refuse(seq, &from_rejection(&rejection))),
    };
    ack.answers.push(v1::Answer { seq, body: Some(said) });
}

fn refuse(seq: u64, status: &Status) -> v1::Answer {
    v1::Answer { seq, body: Some(Said::Refused(refusal::to_rpc(status))) }
}

/// A worker's words are never a reason to refuse its report.
pub fn shorten(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(kagzi_model::limits::REASON_BYTES_MAX));
    text
}
