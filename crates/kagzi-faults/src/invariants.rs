//! The guarantees of the design, checked on the database that killed servers left behind. The rows that must
//! not exist are looked for by SQL; what needs a history is checked on the rows themselves.

mod family;
mod postgres;
mod rows;
mod sqlite;

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use crate::{Execution, ExecutionLog, Phase, StepResult};
use kagzi_model::Audit;
use rows::{Event, Rows, Run};

/// What was found, so that a test can show that something happened at all.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    pub runs: usize,
    pub completed: usize,
    pub results: usize,
    pub executions: usize,
}

/// Numbers of statuses and event kinds, as the model declares them and the database has them.
mod is {
    use kagzi_model::{Kind, Status};

    pub const RUN_STARTED: i64 = Kind::RunStarted as i64;
    pub const RUN_CLAIMED: i64 = Kind::RunClaimed as i64;
    pub const STEP_COMPLETED: i64 = Kind::StepCompleted as i64;
    pub const SLEEP_SCHEDULED: i64 = Kind::SleepScheduled as i64;
    pub const SLEEP_OVER: i64 = Kind::SleepOver as i64;
    pub const RUN_PARKED: i64 = Kind::RunParked as i64;
    pub const LEASE_LOST: i64 = Kind::LeaseLost as i64;
    pub const RUN_RESUMED: i64 = Kind::RunResumed as i64;
    pub const RUN_RETRIED: i64 = Kind::RunRetried as i64;
    pub const RUN_REOPENED: i64 = Kind::RunReopened as i64;
    pub const HANDLER_STARTED: i64 = Kind::HandlerStarted as i64;
    pub const HANDLER_ENDED: i64 = Kind::HandlerEnded as i64;
    pub const SIGNAL_RECEIVED: i64 = Kind::SignalReceived as i64;
    pub const WAIT_BEGAN: i64 = Kind::WaitBegan as i64;
    pub const WAIT_ENDED: i64 = Kind::WaitEnded as i64;
    pub const CHILD_STARTED: i64 = Kind::ChildStarted as i64;
    pub const CHILDREN_CLOSED: i64 = Kind::ChildrenClosed as i64;
    pub const RUN_CONTINUED: i64 = Kind::RunContinued as i64;
    pub const QUESTION_ANSWERED: i64 = Kind::QuestionAnswered as i64;
    pub const COMPLETED: i64 = Status::Completed as i64;
    pub const FAILED: i64 = Status::Failed as i64;
    pub const TIMED_OUT: i64 = Status::TimedOut as i64;
}

/// Panics at the first guarantee that is broken on a SQLite file. Its server must be stopped.
pub fn check_invariants(file: &Path, log: &ExecutionLog, acknowledged: &[String]) -> Evidence {
    check(&sqlite::read(file), log, acknowledged)
}

/// The same on a PostgreSQL database. All its servers must be stopped.
pub async fn check_invariants_on(url: &str, log: &ExecutionLog, acknowledged: &[String]) -> Evidence {
    check(&postgres::read(url).await, log, acknowledged)
}

fn check(found: &Rows, log: &ExecutionLog, acknowledged: &[String]) -> Evidence {
    for (claim, count) in &found.must_be_none {
        assert_eq!(*count, 0, "{claim}");
    }
    let executions = log.read();
    let mut audits = HashMap::new();
    for run in found.runs.values() {
        let whole = found.events.get(&run.id).map_or(&[][..], Vec::as_slice);
        let history = living(run, whole);
        one_result(run, history);
        one_end(run, history);
        epochs_rise(run, history);
        one_reason(run);
        gapless(run, history);
        nothing_early(run, history);
        one_handler(run, history, found);
        answered_once(run, whole);
        audits.insert(run.id.as_str(), waits_are_sound(run, history));
    }
    one_run_per_time(found);
    family::whole(found, &audits);
    family::told(found, &audits);
    family::closed(found);
    for id in acknowledged {
        assert!(found.runs.contains_key(id), "I5: the start of run {id} was acknowledged, and it is gone");
    }
    worker_counts_are_true(found);
    let results = one_effect(&found.events, &executions, log);
    let completed = found.runs.values().filter(|run| run.status == is::COMPLETED).count();
    let began = executions.iter().filter(|execution| execution.phase == Phase::Began).count();
    Evidence { runs: found.runs.len(), completed, results, executions: began }
}

/// The living generation. What is left of those before it is for people; only the first event and what this
/// generation took along must be there.
fn living<'h>(run: &Run, whole: &'h [Event]) -> &'h [Event] {
    assert!(whole.first().is_some_and(|first| first.seq == 1), "I11: run {} has no beginning", run.id);
    let at = whole.partition_point(|event| event.seq < run.first_seq);
    let living = &whole[at..];
    if run.first_seq > 1 {
        let begins = living.first().filter(|first| first.kind == is::RUN_CONTINUED);
        let begins = begins.unwrap_or_else(|| panic!("I11: run {} begins nowhere", run.id));
        for signal in begins.detail["unread"].as_array().into_iter().flatten() {
            let is_there = whole.iter().any(|event| Some(event.seq) == signal["received"].as_i64());
            assert!(is_there, "I14: run {} has lost the signal {signal}", run.id);
        }
    }
    living
}

/// I10: at most one run per schedule and nominal time.
fn one_run_per_time(found: &Rows) {
    let mut times = HashMap::new();
    for run in found.runs.values() {
        let scheduled = &run.options["scheduled"];
        if let (Some(schedule), Some(at)) = (scheduled["schedule"].as_str(), scheduled["at"].as_i64())
            && let Some(other) = times.insert((schedule.to_owned(), at), &run.id)
        {
            panic!("I10: runs {} and {other} are both for {at} of schedule {schedule}", run.id);
        }
    }
}

/// I1: one end, nothing after it but news of its failure handler and its children, and the status says the
/// same. Only an operator can reopen a run; then it has one more end.
fn one_end(run: &Run, history: &[Event]) {
    let mut end: Option<(&Event, i64)> = None;
    for event in history {
        if let Some(status) = event.line.kind.ends_as() {
            assert!(end.is_none(), "I1: run {} ended twice", run.id);
            end = Some((event, status as i64));
            continue;
        }
        match event.kind {
            is::RUN_REOPENED => end = None,
            is::HANDLER_STARTED | is::HANDLER_ENDED | is::CHILDREN_CLOSED => {}
            is::SIGNAL_RECEIVED if family::is_of_child(event) => {}
            kind => assert!(end.is_none(), "I1, I8: run {} went on after its end with {kind}", run.id),
        }
    }
    assert_eq!(end.is_some(), run.finished(), "I1: run {} and its history disagree", run.id);
    assert_eq!(end.map(|(end, _)| end.at), run.finished_at, "I1: run {}", run.id);
    let status = end.map(|(_, status)| status);
    assert!(status.is_none_or(|status| status == run.status), "I1: run {} ended otherwise", run.id);
}

/// I2: at most one recorded result per step. No index enforces it: histories are linear by their key, and
/// this is `decide`'s promise on a linear history.
fn one_result(run: &Run, history: &[Event]) {
    let mut recorded = HashSet::new();
    for event in history.iter().filter(|event| event.kind == is::STEP_COMPLETED) {
        assert!(recorded.insert(&event.step), "I2: {:?} of run {} has two results", event.step, run.id);
    }
}

/// I3: every claim has a higher epoch than the one before, and the row has the last.
fn epochs_rise(run: &Run, history: &[Event]) {
    let claims = history.iter().filter(|event| event.kind == is::RUN_CLAIMED);
    // A later generation begins with the epoch of the lease that ended with the one before.
    let mut last = history.first().and_then(|first| first.detail["epoch"].as_i64()).unwrap_or(0);
    for claim in claims {
        let epoch = claim.detail["epoch"].as_i64().expect("a claim has an epoch");
        assert!(epoch > last, "I3: run {} was claimed at epoch {epoch} after {last}", run.id);
        last = epoch;
    }
    assert_eq!(run.epoch, last, "I3: run {}", run.id);
}

/// I13: a question to a person has one answer.
fn answered_once(run: &Run, history: &[Event]) {
    let mut answered = HashSet::new();
    for event in history.iter().filter(|event| event.kind == is::QUESTION_ANSWERED) {
        let question = event.detail["question"].as_str().expect("an answer names its question");
        assert!(answered.insert(question), "I13: question {question} of run {} was answered twice", run.id);
    }
}

/// I4: the state names one reason, and every column that is derived from it agrees.
fn one_reason(run: &Run) {
    let name = run.state["is"].as_str().expect("a state has a name");
    let time = |field: &str| run.state[field].as_i64();
    let (status, due_at) = match name {
        "ready" => (1, time("since")),
        "retry" => (1, time("at")),
        "leased" => (2, None),
        "timer" | "signal" | "child" | "event" => (3, time("at")),
        "person" => (8, time("at")),
        "paused" => (8, None),
        "completed" => (4, None),
        "failed" => (5, None),
        "cancelled" => (6, None),
        "timed_out" => (7, None),
        other => panic!("I4: run {} has the unknown state {other}", run.id),
    };
    assert_eq!(run.status, status, "I4: run {} is {name}", run.id);
    assert_eq!(run.due_at, due_at, "I4: run {} is {name}", run.id);
    // A wait for somebody's word may have no time at which it goes on by itself.
    let due_must = ["ready", "retry", "timer"].contains(&name);
    assert_eq!(
        run.due_at.is_some() && !["signal", "child", "person", "event"].contains(&name),
        due_must,
        "I4: run {} is {name}",
        run.id
    );
    let worker = (name == "leased").then(|| run.state["worker"].as_str().expect("a lease has a worker"));
    assert_eq!(run.lease_worker.as_deref(), worker, "I4: run {} is {name}", run.id);
    // Only a lease has these two; a wait for a signal has an end of its own, which no sweep waits for.
    let lease = |field: &str| time(field).filter(|_| name == "leased");
    let wakes = [lease("until"), lease("step_timeout_at"), run.deadline_at];
    // An ended run may have children left to close; that they are closed is I17.
    let sweep_at = if run.finished() { run.sweep_at } else { wakes.into_iter().flatten().min() };
    assert_eq!(run.sweep_at, sweep_at, "I4: run {} is {name}", run.id);
}

/// I14 to I16, as far as one run's history and row can show them: a signal counts once and is taken by at
/// most one wait, a run that waits has an open wait and nothing that it waits for, a step has one child.
fn waits_are_sound(run: &Run, history: &[Event]) -> Audit {
    let mut audit = Audit::default();
    history.iter().for_each(|event| audit.see(&event.line));
    let state = serde_json::from_value(run.state.clone()).expect("a state that the model knows");
    let complaints = audit.complaints(&state);
    assert!(complaints.is_empty(), "{}: run {}", complaints.join(", "), run.id);
    audit
}

/// I11: 1, 2, 3, … and the first is the start; or from where the living generation begins.
fn gapless(run: &Run, history: &[Event]) {
    assert!(!history.is_empty(), "I11: run {} has no history", run.id);
    for (event, expected) in history.iter().zip(run.first_seq..) {
        assert_eq!(event.seq, expected, "I11: run {} has a gap", run.id);
    }
    let begins = if run.first_seq == 1 { is::RUN_STARTED } else { is::RUN_CONTINUED };
    assert_eq!(history[0].kind, begins, "I11: run {} begins with its start", run.id);
}

/// I6: no sleep ends and no retry begins before its time.
fn nothing_early(run: &Run, history: &[Event]) {
    let mut not_before = 0;
    let mut sleeps = HashMap::new();
    for event in history {
        let time = |field: &str| event.detail[field].as_i64().unwrap_or(0);
        match event.kind {
            // A wait for somebody, or for a child, may have a time at which it is over.
            is::SLEEP_SCHEDULED | is::WAIT_BEGAN | is::CHILD_STARTED => {
                sleeps.insert(event.step.clone(), time("until"));
            }
            is::SLEEP_OVER => assert!(event.at >= sleeps[&event.step], "I6: run {} woke early", run.id),
            is::RUN_PARKED => not_before = time("due_at"),
            is::LEASE_LOST => not_before = time("retry_at"),
            is::RUN_RETRIED => not_before = time("at"),
            // Somebody's word comes before the time at which the run would have gone on by itself.
            is::RUN_RESUMED | is::WAIT_ENDED => not_before = 0,
            is::RUN_CLAIMED => {
                assert!(event.at >= not_before, "I6: run {} was claimed early", run.id);
                for step in event.detail["slept"].as_array().into_iter().flatten() {
                    let until = sleeps[&step.as_str().map(str::to_owned)];
                    assert!(event.at >= until, "I6: run {} woke early", run.id);
                }
            }
            _ => {}
        }
    }
}

/// I9: a run that failed and asked for a handler has exactly one, and says so once.
fn one_handler(run: &Run, history: &[Event], found: &Rows) {
    let Some(wanted) = run.options["on_failure"]["workflow_type"].as_str() else { return };
    let told = history
        .iter()
        .filter(|event| event.kind == is::HANDLER_STARTED && event.detail["workflow_type"] == wanted);
    let carried = history.iter().filter_map(|event| event.detail["handlers"].as_array()).flatten();
    let carried = carried.filter_map(|handler| handler.as_str());
    let told: Vec<&str> = carried.chain(told.filter_map(|event| event.detail["handler"].as_str())).collect();
    let handles =
        |other: &&Run| other.workflow_type == wanted && other.options["handler_of"].as_str() == Some(&run.id);
    let handlers: Vec<&str> = found.runs.values().filter(handles).map(|other| other.id.as_str()).collect();
    // A run that was reopened after its failure keeps the handler that it had.
    let reopened = history.iter().any(|event| event.kind == is::RUN_REOPENED);
    let due = usize::from([is::FAILED, is::TIMED_OUT].contains(&run.status));
    assert!(handlers.len() == due || reopened, "I9: run {} has {} handlers", run.id, handlers.len());
    assert!(told == handlers, "I9: run {} tells of the handlers {told:?} and has {handlers:?}", run.id);
}

/// What workers are credited with is what their runs came to, no more after a crash and no less.
fn worker_counts_are_true(found: &Rows) {
    let count = |status: i64| found.runs.values().filter(|run| run.status == status).count() as i64;
    let true_total = |total: i64, count: i64| total == count || (found.totals_lag && total < count);
    let (completed, failed) = (found.completed_total, found.failed_total);
    assert!(true_total(completed, count(is::COMPLETED)), "workers' completed_total is {completed}");
    assert!(true_total(failed, count(is::FAILED)), "workers' failed_total is {failed}");
}

/// I12: one key per step, at least one execution per recorded result, and the result is one that was
/// returned.
fn one_effect(events: &HashMap<String, Vec<Event>>, executions: &[Execution], log: &ExecutionLog) -> usize {
    let mut keys: HashMap<(&str, &str), &str> = HashMap::new();
    let mut effects: HashMap<&str, usize> = HashMap::new();
    for execution in executions {
        let step = (execution.run.as_str(), execution.step.as_str());
        let key = keys.entry(step).or_insert(&execution.key);
        assert_eq!(*key, execution.key, "I12: {step:?} was executed under two keys");
        if execution.phase == Phase::Effect {
            *effects.entry(&execution.key).or_default() += 1;
        }
    }
    let distinct: HashSet<_> = keys.values().collect();
    assert_eq!(distinct.len(), keys.len(), "I12: two steps share a key");
    assert!(effects.values().all(|count| *count == 1), "I12: an effect happened twice");

    let returned: HashMap<&str, &Execution> = executions
        .iter()
        .filter(|execution| execution.phase == Phase::Ended)
        .map(|execution| (execution.nonce.as_str(), execution))
        .collect();
    let mut results = 0;
    for (run, history) in events {
        for event in history.iter().filter(|event| event.kind == is::STEP_COMPLETED) {
            let payload = event.payload.as_deref().unwrap_or_default();
            // Results of workers driven by hand are not in the log.
            let Ok(result) = serde_json::from_slice::<StepResult>(payload) else { continue };
            let execution = returned.get(result.nonce.as_str()).expect("I12: a result that nobody returned");
            assert_eq!((&execution.run, Some(&execution.step)), (run, event.step.as_ref()), "I12");
            assert!(log.sank(&execution.key), "I12: a result without an effect");
            results += 1;
        }
    }
    results
}
