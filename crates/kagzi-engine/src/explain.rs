//! Why a run is where it is, in one true sentence.

use kagzi_model::{
    Name, PROMISE_CHANNEL, Parked, Reason, Run, RunId, State, Timestamp, Topic, Wait, Wake, WorkerStatus,
    ago, child_of, in_time, moment,
};
use kagzi_store::{RunKey, StoreError, WorkerView};

use crate::{Engine, EngineError};

/// The sentence, and the reason in one word (`finished` when there is none).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    pub sentence: String,
    pub reason: &'static str,
}

/// A run that cannot be read does not move here.
fn unreadable(why: &str) -> Explanation {
    let sentence = format!(
        "this server cannot read it and leaves it alone: {why}; a newer server may know more, and \
         kagzi doctor names every such row"
    );
    Explanation { sentence, reason: "unreadable" }
}

impl Engine {
    /// Says why a run does not move, or how it ended.
    pub async fn explain(&self, namespace: &Name, id: RunId) -> Result<Explanation, EngineError> {
        let key = RunKey { id, namespace: namespace.clone() };
        if let Some(note) = self.store().stats().aside.why(&key) {
            return Ok(unreadable(&note.why));
        }
        let run = match self.read_run(namespace, id).await {
            Ok(view) => view.run,
            Err(EngineError::Store(StoreError::Corrupt(why))) => return Ok(unreadable(&why)),
            Err(other) => return Err(other),
        };
        let now = self.clock().now();
        let sentence = match &run.state {
            State::Ready { since } => self.ready(&run, *since, now).await?,
            State::Leased(lease) => {
                let worker = self.store().worker_by_id(namespace, lease.worker).await?;
                let host = worker.map_or_else(String::new, |view| {
                    let registration = view.worker.registration;
                    format!(" ({} pid {})", registration.hostname, registration.pid)
                });
                let steps = self.hub().running.of(id, run.epoch);
                let doing = match steps.as_slice() {
                    [] => String::new(),
                    [step] => format!(", running step '{}' (attempt {})", step.path, step.attempt),
                    many => format!(", running {} steps", many.len()),
                };
                let (since, until) = (ago(now, lease.since), moment(lease.until));
                format!(
                    "worker {}{host} executes it since {since}{doing}; its lease lasts until {until}",
                    lease.worker
                )
            }
            State::Waiting(parked) if matches!(parked.wait, Wait::Person { .. }) => {
                let asked = self.asked_of(namespace, id, now).await?;
                asked.unwrap_or_else(|| waits_for(now, id, parked))
            }
            State::Waiting(parked) => waits_for(now, id, parked),
            State::Paused { by, why, since } => format!(
                "it was paused by {by} {} ago: {why}; let it go on with: kagzi run resume {id}",
                ago(now, *since)
            ),
            State::Completed => format!("it completed at {}", ended(&run)),
            State::Failed { failure } => {
                format!("it failed at {} with '{}'", ended(&run), failure.message)
            }
            State::Cancelled { reason } if reason.is_empty() => {
                format!("it was cancelled at {}", ended(&run))
            }
            State::Cancelled { reason } => format!("it was cancelled at {}: {reason}", ended(&run)),
            State::TimedOut { failure } => format!("it timed out at {}: {}", ended(&run), failure.message),
        };
        let due = run.due_at().is_some_and(|at| at <= now) && !matches!(run.state, State::Ready { .. });
        let sentence = match due {
            true => match self.held_by((namespace, &run.task_queue, &run.workflow_type), now).await? {
                Some(held) => format!("{sentence}; it is due, but {held}"),
                None => sentence,
            },
            false => sentence,
        };
        let sentence = match run.generation {
            1 => sentence,
            later => format!("{sentence}; it continued in place and is in generation {later}"),
        };
        let sentence = match first_deadline(&run) {
            Some(at) => format!(
                "{sentence}; but its deadline comes first: it will time out at {} ({})",
                moment(at),
                in_time(now, at)
            ),
            None => sentence,
        };
        Ok(Explanation { sentence, reason: run.state.reason().map_or("finished", Reason::name) })
    }

    async fn ready(&self, run: &Run, since: Timestamp, now: Timestamp) -> Result<String, EngineError> {
        if since > now {
            let when = moment(since);
            return Ok(format!(
                "it starts at {when}, as whoever started it asked; no worker is given it before"
            ));
        }
        let workers = self.living_workers(&run.namespace, Some(&run.task_queue)).await?;
        let registers =
            |view: &&WorkerView| view.worker.registration.workflow_types.contains(&run.workflow_type);
        let online: Vec<_> =
            workers.iter().filter(|view| view.worker.status == WorkerStatus::Online).collect();
        let able: Vec<_> = online.iter().copied().filter(registers).collect();
        let (queue, kind) = (&run.task_queue, &run.workflow_type);
        let waiting = format!("it has been ready for {}", ago(now, since));
        if let Some(held) = self.held_by((&run.namespace, queue, kind), now).await? {
            return Ok(format!("{waiting}: {held}"));
        }
        if able.is_empty() {
            let draining = workers
                .iter()
                .filter(registers)
                .filter(|view| view.worker.status == WorkerStatus::Draining)
                .count();
            if draining > 0 {
                return Ok(format!(
                    "{waiting}: the workers for type '{kind}' on queue '{queue}' are draining"
                ));
            }
            if online.is_empty() {
                return Ok(format!("{waiting}: no worker is online on queue '{queue}'"));
            }
            return Ok(format!("{waiting}: no online worker on queue '{queue}' registers type '{kind}'"));
        }
        let free: u32 =
            able.iter().map(|view| view.worker.registration.max_concurrent.saturating_sub(view.active)).sum();
        let count = able.len();
        if free == 0 {
            return Ok(format!("{waiting}: all slots of the {count} workers for type '{kind}' are in use"));
        }
        Ok(format!("{waiting}, and {count} workers with {free} free slots can take it"))
    }
}

/// What a parked run waits for, and until when.
fn waits_for(now: Timestamp, id: RunId, parked: &Parked) -> String {
    let Parked { step, attempt, at, wait, since, others, wake } = parked;
    let step = step.as_deref();
    let when = at.map_or_else(String::new, |at| format!("{} ({})", moment(at), in_time(now, at)));
    match (wait, step) {
        (Wait::Timer { .. }, step) => format!("it sleeps in '{}' until {when}", step.unwrap_or("sleep")),
        (Wait::Retry { failure, .. }, Some(step)) => format!(
            "attempt {attempt} of step '{step}' failed with '{}'; the next one begins at {when}",
            failure.message
        ),
        (Wait::Retry { failure, .. }, None) => {
            format!("{} ({attempt} in a row); another worker may take it at {when}", failure.message)
        }
        (Wait::Signal { channel, .. }, _) => {
            let since = since.map_or_else(String::new, |at| format!(" since {}", ago(now, at)));
            let until = if when.is_empty() { String::new() } else { format!(", until {when}") };
            let others = if *others == 0 { String::new() } else { format!(" (and for {others} others)") };
            if let Some(topic) = Topic::of_channel(channel) {
                let ends = match topic.is_engines() {
                    true => "the engine publishes it".to_owned(),
                    false => format!("publish it with: {}", publish_command(&topic)),
                };
                return format!("it waits for an event on {}{since}{until}{others}; {ends}", topic.words());
            }
            match channel.strip_prefix(PROMISE_CHANNEL) {
                Some(name) => format!(
                    "it waits for promise '{name}'{since}{until}{others}; complete it with its token, or \
                     with: kagzi promise complete --run {id} {name} JSON"
                ),
                None => format!(
                    "it waits for a signal on '{channel}'{since}{until}{others}; send one with: \
                     kagzi run signal {id} {channel} JSON, or where its code answers requests: \
                     kagzi run ask {id} {channel} JSON"
                ),
            }
        }
        (Wait::Person { .. }, step) => {
            let since = since.map_or_else(String::new, |at| format!(" since {}", ago(now, at)));
            let others = if *others == 0 { String::new() } else { format!(" (and for {others} others)") };
            format!(
                "it waits for a person to answer '{}'{since}{others}; see who is asked, and answer, with: \
                 kagzi inbox --run {id}",
                step.unwrap_or("its question")
            )
        }
        (Wait::Child { channel, .. }, _) => {
            let child = child_of(channel).map_or_else(String::new, |child| child.to_string());
            let since = since.map_or_else(String::new, |at| format!(" since {}", ago(now, at)));
            let until = if when.is_empty() { String::new() } else { format!(", until {when}") };
            let others = match (others, wake) {
                (0, _) => String::new(),
                (others, Wake::First) => format!(" (and for {others} others)"),
                (others, Wake::Last | Wake::LastOrFailed) => {
                    format!(" and {others} others, and goes on with the last")
                }
            };
            format!(
                "it waits for child run {child}{others}{since}{until}; see: kagzi run why {child}, \
                 kagzi run tree {id}"
            )
        }
    }
}

/// The command that publishes an event on this topic.
fn publish_command(Topic { name, key }: &Topic) -> String {
    let key = if key.is_empty() { String::new() } else { format!(" --key '{key}'") };
    format!("kagzi event publish {name} JSON{key}")
}

/// The deadline of a run, where it comes before whatever the run waits for. A paused run waits for somebody,
/// and its deadline does not.
fn first_deadline(run: &Run) -> Option<Timestamp> {
    let deadline = run.deadline_at?;
    let first = match &run.state {
        State::Waiting(parked) => parked.at.is_none_or(|at| deadline < at),
        State::Paused { .. } => true,
        State::Ready { .. }
        | State::Leased(_)
        | State::Completed
        | State::Failed { .. }
        | State::Cancelled { .. }
        | State::TimedOut { .. } => false,
    };
    first.then_some(deadline)
}

fn ended(run: &Run) -> String {
    run.finished_at.map_or_else(|| "an unknown time".into(), moment)
}
