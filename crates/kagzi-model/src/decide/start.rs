//! Start: one run per business id. What it tells its run with the start is told to the run that has the id.

use std::sync::Arc;

use super::history_bound;
use crate::{
    Aggregate, Author, Change, EventKind, IdReuse, Mail, Name, Payload, Rejection, Rule, Run, RunKey,
    RunOptions, StartRun, Started, State, Status, Timestamp, act, limits::UNREAD_MAX,
};

/// Creates the run; the same request again gets the run that is there, another request under the id a
/// conflict, or by its policy a new run, which takes the id over.
pub fn decide(
    now: Timestamp,
    taken: Option<&Aggregate>,
    taken_input: Option<&Payload>,
    start: &StartRun,
) -> Result<Change<Started>, Rejection> {
    let Some(taken) = taken else { return Ok(create(now, start)) };
    // Without a business id only the same start again meets a run: it has its run id.
    let name = || start.business_id.clone().unwrap_or_else(|| Name::from(start.id.to_string()));
    let repeated = start.options.request.is_some() && taken.run.options.request == start.options.request;
    if !repeated {
        let status = taken.run.state.status();
        let failed = matches!(status, Status::Failed | Status::TimedOut | Status::Cancelled);
        match start.options.reuse {
            IdReuse::Attach => {}
            IdReuse::Reject => {
                let (business_id, run) = (name(), taken.run.id);
                return Err(Rejection::Taken { business_id, run, status });
            }
            IdReuse::AfterFailure if failed => return Ok(create(now, start)),
            IdReuse::AfterEnd if taken.run.state.finished() => return Ok(create(now, start)),
            IdReuse::AfterFailure | IdReuse::AfterEnd => {}
        }
    }
    let conflict = |what| {
        let run = taken.run.id;
        Err(Rejection::Conflict { business_id: name(), run, what })
    };
    if taken.run.workflow_type != start.workflow_type {
        return conflict("workflow type");
    }
    if taken.run.task_queue != start.task_queue {
        return conflict("task queue");
    }
    // A start that tells its run something is sent again and again, each time with what is to be told: the
    // input is for the first of them.
    if !start.signals.is_empty() {
        return tell(now, taken, &start.signals);
    }
    if taken_input.is_some_and(|input| *input != start.input) {
        return conflict("input");
    }
    Ok(Change::nothing(Started { run: taken.run.id, existed: true }))
}

/// Tells the run that is there, in the same commit: all of it, or nothing where any of it is refused.
fn tell(now: Timestamp, taken: &Aggregate, signals: &[act::Signal]) -> Result<Change<Started>, Rejection> {
    let run = &taken.run;
    let by = Author::new("start", "");
    let mut change = Change::nothing(Started { run: run.id, existed: true });
    let mut bytes = 0;
    for signal in signals.iter().filter(|signal| signal.repeat(now, taken).is_none()) {
        signal.decide(now, taken, &by)?;
        bytes += signal.payload_bytes();
        let key = RunKey::new(run.namespace.clone(), run.id);
        change.follow.push(key.order(by.clone(), signal.clone()));
    }
    let unread = taken.mail.as_deref().map_or(0, Mail::unread_len);
    if !change.follow.is_empty() && unread + change.follow.len() > UNREAD_MAX {
        return Err(Rejection::TooManySignals { run: run.id, max: UNREAD_MAX });
    }
    history_bound::check(taken, bytes)?;
    Ok(change)
}

/// What a new run is told, behind its first event. Each counts once per channel and id.
fn told_first(signals: &[act::Signal]) -> impl Iterator<Item = (EventKind, Option<Payload>)> {
    let same = |a: &act::Signal, b: &act::Signal| (&a.channel, &a.id) == (&b.channel, &b.id);
    let first = move |(at, signal): &(usize, &act::Signal)| !signals[..*at].iter().any(|a| same(a, signal));
    signals.iter().enumerate().filter(first).map(|(_, signal)| {
        let act::Signal { channel, id, payload, failure } = signal.clone();
        (EventKind::SignalReceived { channel, id, failure, published: None }, Some(payload))
    })
}

impl Run {
    /// The row of a run as it begins.
    pub(crate) fn begun(now: Timestamp, start: &StartRun) -> Run {
        Run {
            namespace: start.namespace.clone(),
            id: start.id,
            business_id: start.business_id.clone(),
            workflow_type: start.workflow_type.clone(),
            task_queue: start.task_queue.clone(),
            // A run that is to start later is ready from then on: due, and so claimed, not before.
            state: State::Ready { since: start.options.start_at.map_or(now, |at| at.max(now)) },
            version: 0,
            epoch: 0,
            attempts: 0,
            dispatch_count: 0,
            crashes: 0,
            generation: 1,
            first_seq: 1,
            created_at: now,
            started_at: None,
            finished_at: None,
            close_at: None,
            deadline_at: start
                .options
                .timeouts
                .deadline_of(start.options.start_at.map_or(now, |at| at.max(now)), start.deadline_at),
            // What to do about a taken id is of no use afterwards, and is not stored.
            options: Arc::new(RunOptions { reuse: IdReuse::Attach, ..start.options.clone() }),
            labels: start.labels.clone(),
        }
    }
}

fn create(now: Timestamp, start: &StartRun) -> Change<Started> {
    let run = Run::begun(now, start);
    let reply = Started { run: run.id, existed: false };
    let mut events = vec![(EventKind::RunStarted, Some(start.input.clone()))];
    events.extend(told_first(&start.signals));
    Change { run: Some(run), events, reply, follow: vec![] }
}
