//! The reviewed tables: what every command does to a run in every state, and to a step in every state.
//!
//! Each line of the snapshots is a decision that somebody read and agreed with. A changed line is a changed
//! rule.

mod scene;

use std::collections::HashSet;

use kagzi_model::{
    Act, Aggregate, Asleep, Attempted, Blocked, Change, ChildBegan, Claimed, Command, Done, Duty, EventKind,
    Order, Ordered, Parked, Reclaimed, Rejection, Reply, Report, RunFailed, Signalled, Started, State,
    Status, Timestamp, Wait, Waited, decide,
};
use scene::{NOW, RUN, commands, input, start_commands, states, step_commands, step_states};

#[test]
fn every_command_in_every_state() {
    let mut table = String::new();

    for (state, seen) in states() {
        for (name, command) in commands() {
            line(&mut table, (&state, name), decide(NOW, Some(&seen), None, &command), &seen);
        }
        for (name, command) in start_commands() {
            let change = decide(NOW, Some(&seen), Some(&input()), &command);
            line(&mut table, (&state, name), change, &seen);
        }
        table.push('\n');
    }

    insta::assert_snapshot!(table);
}

#[test]
fn every_step_command_on_every_state_of_a_step() {
    let mut table = String::new();

    for (state, seen) in step_states() {
        for (name, command) in step_commands() {
            line(&mut table, (&state, &name), decide(NOW, Some(&seen), None, &command), &seen);
        }
        table.push('\n');
    }

    insta::assert_snapshot!(table);
}

#[test]
fn every_command_but_start_needs_a_run_of_its_namespace() {
    let elsewhere = |mut seen: Aggregate| {
        seen.run.namespace = "elsewhere".into();
        seen
    };

    for (_, seen) in states() {
        for (_, command) in commands() {
            let missing = Rejection::NotFound { run: RUN, namespace: scene::namespace() };

            assert_eq!(decide(NOW, None, None, &command), Err(missing.clone()));
            assert_eq!(decide(NOW, Some(&elsewhere(seen.clone())), None, &command), Err(missing));
        }
    }
}

fn line(
    table: &mut String,
    (state, command): (&str, &str),
    decided: Result<Change, Rejection>,
    seen: &Aggregate,
) {
    let outcome = match decided {
        Err(rejection) => format!("refused: {}", rejection.to_string().replace(&RUN.to_string(), "R")),
        Ok(change) => accepted(&change, seen),
    };
    table.push_str(&format!("{state:<28} × {command:<32} → {outcome}\n"));
}

fn accepted(change: &Change, seen: &Aggregate) -> String {
    let mut parts = Vec::new();
    match &change.run {
        None => {}
        Some(run) if run.state == seen.run.state => parts.push("row changed, same state".to_owned()),
        Some(run) => parts.push(state(&run.state)),
    }
    if let Some(run) = &change.run {
        let counted = [
            ("epoch", seen.run.epoch, run.epoch),
            ("attempts", seen.run.attempts.into(), run.attempts.into()),
            ("dispatches", seen.run.dispatch_count.into(), run.dispatch_count.into()),
            ("crashes", seen.run.crashes.into(), run.crashes.into()),
            ("generation", seen.run.generation.into(), run.generation.into()),
            ("begins with event", seen.run.first_seq, run.first_seq),
        ];
        let moved = counted.iter().filter(|(_, before, after)| before != after);
        parts.extend(moved.map(|(name, before, after)| format!("{name} {before}→{after}")));
    }
    let events: Vec<_> = change
        .events
        .iter()
        .map(|(kind, payload)| event(kind) + if payload.is_some() { " with payload" } else { "" })
        .collect();
    parts.push(match events.is_empty() {
        true if change.run.is_none() => "nothing written".to_owned(),
        true => "no event".to_owned(),
        false => format!("[{}]", events.join("; ")),
    });
    let follow: Vec<_> = change.follow.iter().map(|command| format!(", then {}", variant(command))).collect();
    format!("{}{}; answers {}", parts.join(", "), follow.concat(), reply(&change.reply))
}

fn variant(command: &Command) -> &'static str {
    match &command.act {
        Act::Start(_) => "Start",
        Act::Report { report, .. } => report.name(),
        Act::Order { order, .. } => order.name(),
        Act::Duty(duty) => duty.name(),
    }
}

fn state(state: &State) -> String {
    match state {
        State::Ready { since } => format!("READY since {}", after(*since)),
        State::Leased(lease) => {
            let step = lease.step_timeout_at.map(|at| format!(", a step until {}", after(at)));
            format!("LEASED until {}{}", after(lease.until), step.unwrap_or_default())
        }
        State::Waiting(parked) => {
            let Parked { step, attempt, at, wait, others, wake, .. } = &**parked;
            let what = step.as_deref().unwrap_or("of the run");
            let at = at.map_or_else(String::new, |at| format!(" at {}", after(at)));
            match wait {
                Wait::Timer { .. } => format!("TIMER {what}{at}"),
                Wait::Retry { .. } => format!("RETRY {what} after attempt {attempt}{at}"),
                Wait::Signal { channel, .. } => {
                    let others = if *others > 0 { format!(" and {others} others") } else { String::new() };
                    format!("SIGNAL {what} on {channel}{others}{at}")
                }
                Wait::Person { channel, .. } => {
                    let others = if *others > 0 { format!(" and {others} others") } else { String::new() };
                    format!("PERSON {what} on {channel}{others}{at}")
                }
                Wait::Child { channel, .. } => {
                    let others = if *others > 0 { format!(" and {others} others") } else { String::new() };
                    format!("CHILD {what} on {channel}{others}{at}, wakes with {wake:?}")
                }
            }
        }
        State::Paused { by, .. } => format!("PAUSED by {by}"),
        State::Completed => "COMPLETED".to_owned(),
        State::Failed { failure } => format!("FAILED {}", failure.code),
        State::Cancelled { reason } => format!("CANCELLED '{reason}'"),
        State::TimedOut { .. } => "TIMED_OUT".to_owned(),
    }
}

fn event(kind: &EventKind) -> String {
    let detail = match kind {
        EventKind::RunClaimed { slept, .. } if slept.is_empty() => String::new(),
        EventKind::RunClaimed { slept, .. } => format!(" slept {slept:?}"),
        EventKind::StepStarted { step, attempt, .. }
        | EventKind::StepProgressed { step, attempt, .. }
        | EventKind::StepClosed { step, attempt, .. }
        | EventKind::StepCompleted { step, attempt, .. } => format!(" {step}#{attempt}"),
        EventKind::RunRetried { attempt, at, .. } => format!(" #{attempt} at {}", after(*at)),
        EventKind::HandlerStarted { workflow_type, task_queue, .. } => {
            format!(" {workflow_type} on {task_queue}")
        }
        EventKind::StepFailed { step, attempt, retry_at, .. } => {
            format!(" {step}#{attempt} retry {}", retry_at.map_or("never".to_owned(), after))
        }
        EventKind::SleepScheduled { step, until, .. } => format!(" {step} until {}", after(*until)),
        EventKind::SleepOver { step } => format!(" {step}"),
        EventKind::ChildStarted { step, child, close, awaited, .. } => {
            format!(" {step} {child}, {close:?}, awaited {awaited}")
        }
        EventKind::ChildrenClosed { children } => format!(" {children:?}"),
        EventKind::RunParked { due_at, closes, opens, waits, .. } => {
            let list = |what, steps: &[kagzi_model::Name]| match steps {
                [] => String::new(),
                steps => format!(" {what} {steps:?}"),
            };
            let lists = [list("waits for", waits), list("closes", closes), list("opens", opens)];
            format!(" due {}{}", due_at.map_or("never".to_owned(), after), lists.concat())
        }
        EventKind::RunReopened { forgives, .. } if !forgives.is_empty() => format!(" forgives {forgives:?}"),
        EventKind::LeaseLost { retry_at, .. } => {
            format!(" retry {}", retry_at.map_or("never".to_owned(), after))
        }
        EventKind::LabelSet { name, value, .. } => format!(" {name}={value}"),
        EventKind::SignalReceived { channel, id, .. } => format!(" {id} on {channel}"),
        EventKind::WaitBegan { step, channel, until, .. } => {
            format!(" {step} on {channel} until {}", until.map_or("ever".to_owned(), after))
        }
        EventKind::WaitEnded { step, id, received, failure, .. } => {
            let how = if failure.is_some() { " failed" } else { "" };
            let held = received.map_or(String::new(), |seq| format!(" of event {seq}"));
            format!(" {step} with {id}{held}{how}")
        }
        EventKind::ChannelClosed { step, channel, .. } => format!(" {step} on {channel}"),
        EventKind::PromiseMade { name, until, .. } => {
            format!(" {name} until {}", until.map_or("ever".to_owned(), after))
        }
        EventKind::PromiseBeat { name, until } => format!(" {name} until {}", after(*until)),
        EventKind::ValueSet { name, number } => format!(" {name} #{number}"),
        EventKind::RunContinued { unread, .. } => match unread.len() {
            0 => String::new(),
            count => format!(" with {count} unread"),
        },
        EventKind::RunStarted
        | EventKind::RunReleased { .. }
        | EventKind::RunPaused { .. }
        | EventKind::RunResumed { .. }
        | EventKind::RunCompleted
        | EventKind::RunFailed { .. }
        | EventKind::RunCancelled { .. }
        | EventKind::RunTimedOut { .. }
        | EventKind::RunReopened { .. }
        | kagzi_model::only_told!()
        | EventKind::Unknown { .. } => String::new(),
    };
    format!("{}{detail}", kind.name())
}

fn reply(reply: &Reply) -> String {
    match reply {
        Reply::Started(Started { existed, .. }) => format!("started, existed {existed}"),
        Reply::Claimed(Claimed { epoch }) => format!("leased at epoch {epoch}"),
        Reply::Begin(answer) => match answer {
            kagzi_model::Begin::Execute { attempt, .. } => format!("execute attempt {attempt}"),
            kagzi_model::Begin::Recorded => "recorded".to_owned(),
            kagzi_model::Begin::Failed { failure, .. } => format!("failed {}", failure.code),
            kagzi_model::Begin::NotReady { at } => format!("not ready before {}", after(*at)),
        },
        Reply::Done(Done { already: true }) => "done already".to_owned(),
        Reply::Done(Done { already: false }) => "done".to_owned(),
        Reply::Attempted(Attempted::Retry { at, attempt }) => {
            format!("attempt {attempt} is retried at {}", after(*at))
        }
        Reply::Attempted(Attempted::Final { attempts, finality }) => {
            format!("final after {attempts}, {finality:?}")
        }
        Reply::RunFailed(RunFailed { retry_at }) => {
            format!("failed, retry {}", retry_at.map_or("never".to_owned(), after))
        }
        Reply::Asleep(Asleep::Over { already: true }) => "done already".to_owned(),
        Reply::Asleep(Asleep::Over { already: false }) => "done".to_owned(),
        Reply::Waited(Waited::Until(until)) => {
            format!("waits until {}", until.map_or("ever".to_owned(), after))
        }
        Reply::Waited(Waited::Taken { seq, .. }) => format!("takes what event {seq} holds"),
        Reply::Waited(Waited::Elapsed) => "its time is over".to_owned(),
        Reply::Waited(Waited::Silent) => "its signs of life have stopped".to_owned(),
        Reply::Waited(Waited::Closed) => "nothing more comes".to_owned(),
        Reply::ChildBegan(ChildBegan { child, waited }) => {
            let waited =
                waited.clone().map_or("not awaited".to_owned(), |waited| self::reply(&waited.into()));
            format!("child {child}, {waited}")
        }
        Reply::Signalled(Signalled { already: true }) => "told already".to_owned(),
        Reply::Signalled(Signalled { already: false }) => "told".to_owned(),
        Reply::Reclaimed(Reclaimed::Nothing) => "done already".to_owned(),
        Reply::Reclaimed(Reclaimed::Ended) => "done".to_owned(),
        Reply::Blocked(Blocked { refusal }) => format!("refused: {refusal}"),
        Reply::Asleep(Asleep::Until(until)) => format!("sleeping until {}", after(*until)),
        Reply::Ordered(Ordered { status, already }) => {
            format!("{}{}", status.name(), if *already { " already" } else { "" })
        }
        Reply::Reclaimed(Reclaimed::TakenBack { at }) => {
            format!("orphaned, retry {}", at.map_or("never".to_owned(), after))
        }
    }
}

fn after(at: Timestamp) -> String {
    format!("{:+}ms", (at.0 - NOW.0) / 1000)
}

#[test]
fn every_reason_to_wake_goes_with_its_status() {
    for (name, seen) in states() {
        let state = &seen.run.state;
        if let Some(reason) = state.reason() {
            assert_eq!(state.status(), reason.status(), "{name}: {reason:?}");
        }
    }
}

#[test]
fn the_scenes_cover_every_state_and_command() {
    let scenes = commands();
    let seen: HashSet<_> = scenes.iter().map(|(_, command)| variant(command)).collect();
    let all = Report::NAMES.iter().chain(Order::NAMES).chain(Duty::NAMES);
    let missing: Vec<_> = all.filter(|name| !seen.contains(*name)).collect();
    assert_eq!(missing, [&""; 0], "a new act must come into the table");
    let reached: HashSet<_> = states().iter().map(|(_, seen)| seen.run.state.status()).collect();
    let missing: Vec<_> = Status::ALL.iter().filter(|status| !reached.contains(*status)).collect();
    // No rule leads to it yet.
    assert_eq!(missing, [&Status::Compensating], "a new status must come into the table");
}
