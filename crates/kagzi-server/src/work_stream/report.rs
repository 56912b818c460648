//! Reports: from the worker's words to commands, and from outcomes to acknowledgements.

use kagzi_engine::Engine;
use kagzi_model::{
    Asleep, Attempted, ChildBegan, Ends, LeaseRef, Name, Reply, Report, RunId, StepResult, Timestamp, Waited,
    Wake, act,
};
use kagzi_proto::{
    Reason, refusal,
    v1::{self, answer::Body as Said, report::Body},
};
use kagzi_store::Outcome;
use tonic::Status;

use crate::{
    check,
    rpc::{complete_promise::promise_name, start_child},
    services::limits,
    status::from_rejection,
    wire,
};

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
            Some(Body::PromiseMade(made)) => payload(&made.secret),
            Some(Body::ValueSet(set)) => payload(&set.value),
            Some(Body::StepsRecorded(recorded)) => results(&recorded.steps),
            Some(Body::RunCompleted(completed)) => payload(&completed.output) + results(&completed.steps),
            Some(Body::RunContinued(continued)) => payload(&continued.input) + results(&continued.steps),
            Some(Body::StepFailed(failed)) => failure(&failed.failure),
            Some(Body::RunFailed(failed)) => failure(&failed.failure),
            Some(Body::StartChild(child)) => child.start.as_ref().map_or(0, |start| payload(&start.input)),
            Some(
                Body::SleepScheduled(_)
                | Body::StepClosed(_)
                | Body::SignalAwaited(_)
                | Body::SleepOver(_)
                | Body::LabelSet(_)
                | Body::RunParked(_)
                | Body::RunReleased(_)
                | Body::RunBlocked(_),
            )
            | None => 0,
        }
}

/// Commits a chunk of reports of so many bytes and answers each. Never fails: what went wrong is part of the
/// answers.
pub async fn commit(engine: Engine, namespace: Name, reports: Vec<v1::Report>, bytes: usize) -> Committed {
    let (len, mut ended) = (reports.len(), Vec::new());
    let mut ack = v1::Ack::default();
    let mut commands = Vec::with_capacity(reports.len());
    let mut kept = Vec::with_capacity(reports.len());
    for report in reports {
        let seq = report.seq;
        match read(&engine, &namespace, report) {
            Ok((lease, report)) => {
                let (ends_lease, sleep) = (report.ends() == Ends::Lease, matches!(report, Report::Sleep(_)));
                kept.push(Kept { seq, lease: lease.clone(), ends_lease, sleep });
                commands.push(lease.report(report));
            }
            Err(status) => {
                ack.answers.push(refuse(seq, &status));
            }
        }
    }
    match engine.apply(commands).await {
        Ok(outcomes) => {
            let now = engine.clock().now();
            for (report, outcome) in kept.into_iter().zip(outcomes) {
                if report.ends_lease && has_ended(&outcome) {
                    ended.push((report.lease.run, report.lease.epoch));
                }
                match outcome {
                    Ok(Reply::Waited(waited)) => {
                        ack.answers.push(answer_wait(&engine, &report, waited).await);
                    }
                    Ok(Reply::ChildBegan(began)) => {
                        ack.answers.push(answer_child(&engine, &report, began).await);
                    }
                    outcome => answer(&mut ack, &report, outcome, now),
                }
            }
        }
        Err(error) => {
            // A report is safe to repeat, so whatever is wrong with the store, the worker sends it again.
            let status = Reason::StoreUnavailable.status(error.to_string());
            ack.answers.extend(kept.into_iter().map(|report| refuse(report.seq, &status)));
        }
    }
    Committed { ack, reports: len, bytes, ended }
}

fn read(engine: &Engine, namespace: &Name, report: v1::Report) -> Result<(LeaseRef, Report), Status> {
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
    let report = match body {
        Body::StepRecorded(recorded) => act::RecordStep(result(recorded)?).into(),
        Body::StepFailed(failed) => Report::from(act::FailStep {
            step: step(failed.step)?,
            attempt: failed.attempt,
            failure: wire::read_failure(failed.failure),
            policy: check::retry_policy(failed.retry_policy)?,
            elapsed_ms: failed.elapsed_ms.max(0),
            park: false,
        }),
        Body::StepProgressed(progressed) => Report::from(act::Progress {
            step: step(progressed.step)?,
            progress: check::payload(limits(engine), "progress", progressed.progress)?,
        }),
        Body::SleepScheduled(sleep) => Report::from(act::Sleep {
            step: step(sleep.step)?,
            duration_ms: check::duration_ms("duration_ms", u64::try_from(sleep.duration_ms).unwrap_or(0))?,
            park: false,
        }),
        Body::SleepOver(over) => Report::from(act::SleepOver { step: step(over.step)?.path }),
        Body::SignalAwaited(v1::SignalAwaited { step: asking, ask: Some(asked), .. }) => {
            let ask = Box::new(check::question(*asked)?);
            Report::from(act::Ask { step: step(asking)?, ask, park: false })
        }
        Body::SignalAwaited(awaited) => {
            let wait = act::AwaitSignal {
                step: step(awaited.step)?,
                channel: check::awaited_channel(&awaited.channel)?,
                timeout_ms: check::wait_ms("timeout_ms", awaited.timeout_ms)?,
                last_call: awaited.last_call,
                park: false,
            };
            match awaited.park {
                None => Report::from(wait),
                Some(parked) => Report::from(act::AwaitOrPark { wait, park: park(&parked)? }),
            }
        }
        Body::StartChild(child) => Report::from(start_child::read(engine, namespace, *child)?),
        Body::LabelSet(set) => {
            let (name, value) = check::label(&set.name, &set.value)?;
            Report::from(act::SetLabel { step: step(set.step)?, name, value })
        }
        Body::PromiseMade(made) => Report::from(act::MakePromise {
            step: step(made.step)?,
            name: promise_name(&made.name)?,
            token_hash: check::name("token_hash", &made.token_hash)?,
            secret: check::payload(limits(engine), "secret", made.secret)?,
            timeout_ms: check::wait_ms("timeout_ms", made.timeout_ms)?,
            heartbeat_ms: check::heartbeat_ms(made.heartbeat_ms)?,
        }),
        Body::ValueSet(set) => Report::from(check::value(limits(engine), &set.name, set.number, set.value)?),
        Body::StepsRecorded(recorded) => {
            let steps = recorded.steps.into_iter().map(result).collect::<Result<_, _>>()?;
            Report::from(act::RecordSteps { steps })
        }
        Body::StepClosed(closed) => Report::from(act::CloseStep { step: step(closed.step)? }),
        Body::RunCompleted(completed) => {
            let steps = completed.steps.into_iter().map(result).collect::<Result<_, _>>()?;
            let output = check::payload(limits(engine), "output", completed.output)?;
            Report::from(act::Complete { steps, output })
        }
        Body::RunContinued(continued) => {
            let steps = continued.steps.into_iter().map(result).collect::<Result<_, _>>()?;
            let input = check::payload(limits(engine), "input", continued.input)?;
            Report::from(act::Continue { steps, input })
        }
        Body::RunFailed(failed) => {
            let step = if failed.step.is_empty() { None } else { Some(check::step(&failed.step, 0)?.path) };
            Report::from(act::Fail { failure: wire::read_failure(failed.failure), step })
        }
        Body::RunParked(parked) => Report::from(park(&parked)?),
        Body::RunReleased(released) => Report::from(act::Release { why: shorten(released.reason) }),
        Body::RunBlocked(blocked) => Report::from(act::Block { message: shorten(blocked.message) }),
    };
    Ok((lease, report))
}

fn park(parked: &v1::RunParked) -> Result<act::Park, Status> {
    let path = |path: &String| Ok::<_, Status>(check::step(path, 0)?.path);
    let waits = parked.waits.iter().map(path).collect::<Result<_, _>>()?;
    Ok(act::Park { waits, wake: wake(parked.wake) })
}

/// What the answer needs of a report after it was handed over.
struct Kept {
    seq: u64,
    lease: LeaseRef,
    ends_lease: bool,
    /// It begins a sleep, and wants to hear how long.
    sleep: bool,
}

/// Whether a report that may end its lease has done so: a wait does if nothing has come.
fn has_ended(outcome: &Outcome) -> bool {
    match outcome {
        Ok(Reply::Waited(waited)) => matches!(waited, Waited::Until(_)),
        other => other.is_ok(),
    }
}

/// A wait that took a signal is told what it was.
async fn answer_wait(engine: &Engine, report: &Kept, waited: Waited) -> v1::Answer {
    match engine.told(&report.lease.key(), waited).await {
        Ok(told) => v1::Answer { seq: report.seq, body: Some(Said::Waited(wire::waited(told))) },
        // It is recorded; asked again, it is answered with what was taken.
        Err(error) => refuse(report.seq, &Reason::StoreUnavailable.status(error.to_string())),
    }
}

async fn answer_child(engine: &Engine, report: &Kept, began: ChildBegan) -> v1::Answer {
    let run_id = began.child.to_string();
    let waited = match began.waited {
        None => None,
        Some(waited) => match engine.told(&report.lease.key(), waited).await {
            Ok(told) => Some(wire::waited(told)),
            Err(error) => return refuse(report.seq, &Reason::StoreUnavailable.status(error.to_string())),
        },
    };
    v1::Answer { seq: report.seq, body: Some(Said::ChildBegan(v1::ChildBegan { run_id, waited })) }
}

/// A word that is not known here is the usual one: at worst the run is woken too often.
fn wake(number: i32) -> Wake {
    match v1::Wake::try_from(number) {
        Ok(v1::Wake::Last) => Wake::Last,
        Ok(v1::Wake::LastOrFailed) => Wake::LastOrFailed,
        Ok(v1::Wake::Unspecified | v1::Wake::First) | Err(_) => Wake::First,
    }
}

fn answer(ack: &mut v1::Ack, report: &Kept, outcome: Outcome, now: Timestamp) {
    let seq = report.seq;
    let said = match outcome {
        Ok(Reply::Attempted(Attempted::Retry { at, attempt })) => {
            Said::StepRetry(v1::StepRetry { delay_ms: at.remaining_ms(now), attempt })
        }
        Ok(Reply::Attempted(Attempted::Final { attempts, finality })) => {
            Said::StepFinal(v1::StepFinal { attempts, finality: wire::finality(finality) })
        }
        Ok(Reply::Asleep(Asleep::Until(until))) => {
            Said::Sleeping(v1::Sleeping { remaining_ms: until.remaining_ms(now) })
        }
        Ok(Reply::Asleep(Asleep::Over { .. })) if report.sleep => {
            Said::Sleeping(v1::Sleeping { remaining_ms: 0 })
        }
        // All that the others have to say is that it is done.
        Ok(
            Reply::Asleep(Asleep::Over { .. })
            | Reply::Done(_)
            | Reply::Waited(_)
            | Reply::ChildBegan(_)
            | Reply::Signalled(_)
            | Reply::Started(_)
            | Reply::Claimed(_)
            | Reply::Begin(_)
            | Reply::Ordered(_)
            | Reply::RunFailed(_)
            | Reply::Reclaimed(_)
            | Reply::Blocked(_),
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
