//! Compares everything that two stores hold, and checks the invariants on it.

use std::collections::{HashMap, HashSet};

use kagzi_model::{
    Aggregate, Event, EventKind, Gate, Name, Namespace, Noun, NounRow, Run, State, Timestamp, Trigger,
    WorkerId, attempts,
    intervention::{Intervention, Message, Notice, person_channel},
    journal,
    schedule::Schedule,
};
use kagzi_store::{
    Cursor, Depth, Direction, InterventionFilter, ListedEvent, PageRequest, RunFilter, RunView,
    ScheduleFilter, Store, WorkerFilter, WorkerView,
};

use super::world::World;
use crate::stage::unversioned;

/// All that can be read of one namespace.
#[derive(Debug, PartialEq)]
struct Dump {
    runs: Vec<(RunView, Vec<Event>)>,
    workers: Vec<WorkerView>,
    schedules: Vec<Schedule>,
    namespace: Option<Namespace>,
    gates: Vec<Gate>,
    depths: Vec<Depth>,
    triggers: Vec<NounRow>,
    kept: Vec<ListedEvent>,
    questions: Vec<(Intervention, Vec<Notice>)>,
}

pub async fn stores(left: &Store, right: &Store, world: &World, shown: &str) {
    for namespace in &world.namespaces {
        let (mut here, mut there) = (dump(left, namespace).await, dump(right, namespace).await);
        if left.shared() || right.shared() {
            forget_totals(&mut here);
            forget_totals(&mut there);
        }

        assert_eq!(here.runs.len(), there.runs.len(), "different runs; {shown}");
        for (here, there) in here.runs.iter().zip(&there.runs) {
            assert_eq!(here, there, "a run differs; {shown}");
            invariants(&here.0.run, &here.1, shown);
        }
        assert_eq!(here.workers, there.workers, "different workers; {shown}");
        assert_eq!(here.schedules, there.schedules, "different schedules; {shown}");
        assert_eq!(here.namespace, there.namespace, "a namespace differs; {shown}");
        assert_eq!(here.gates, there.gates, "different gates; {shown}");
        assert_eq!(here.depths, there.depths, "different queues; {shown}");
        assert_eq!(here.triggers, there.triggers, "different triggers; {shown}");
        assert_eq!(here.kept, there.kept, "different events; {shown}");
        assert_eq!(here.questions, there.questions, "different questions; {shown}");
        asked_and_answered(&here, shown);
        within_limits(&here, shown);
    }
}

/// Where servers share a database, workers' totals are written with their heartbeats, and not before.
fn forget_totals(dump: &mut Dump) {
    for view in &mut dump.workers {
        (view.worker.completed_total, view.worker.failed_total) = (0, 0);
    }
}

async fn dump(store: &Store, namespace: &Name) -> Dump {
    let mut runs = Vec::new();
    let mut page = PageRequest { from: None, direction: Direction::Next, limit: 50 };
    loop {
        let found = store.runs(namespace, &RunFilter::default(), &page).await.unwrap();
        for run in &found.rows {
            let view = store.run(namespace, run.id).await.unwrap().expect("a listed run exists");
            assert_eq!(view.run, *run, "the list and the run agree");
            // The id of a run without a business id only stands in for one.
            let shown = Name::from(run.shown_id());
            let named = store.run_by_business(namespace, &shown).await.unwrap();
            let expected = run.business_id.as_ref().map(|_| run.id);
            assert_eq!(named, expected, "a business id names one run");
            // How much is left of the generations before is a store's own affair.
            let events = store.events(namespace, run.id, run.first_seq - 1, 10_000).await.unwrap();
            runs.push((RunView { run: unversioned(view.run), ..view }, events));
        }
        let Some(last) = found.rows.last().filter(|_| found.has_next) else { break };
        page.from = Some(Cursor { at: last.created_at, id: last.id.0 });
    }
    let everyone = PageRequest { from: None, direction: Direction::Next, limit: 10_000 };
    let (workers, total) = store.workers(namespace, &WorkerFilter::default(), &everyone).await.unwrap();
    assert_eq!((workers.rows.len() as u64, false), (total.count, total.capped));
    let mut workers = workers.rows;
    // How often a row was written is a store's own affair.
    workers.iter_mut().for_each(|view| view.worker.row_version = 0);
    let schedules = store.schedules(namespace, &ScheduleFilter::default(), &everyone).await.unwrap().rows;
    let gates = store.gates(namespace).await.unwrap();
    assert!(gates.iter().all(|gate| !gate.is_open()), "an open gate has no row: {gates:?}");
    let depths = store.depths(namespace, Timestamp::MAX).await.unwrap();
    let triggers = store.nouns(namespace, Trigger::KIND, Direction::Next, None, 1_000).await.unwrap();
    let kept = store.kept_events(namespace, None, Direction::Next, None, 10_000).await.unwrap();
    let all = InterventionFilter::default();
    let mut questions = Vec::new();
    for row in store.interventions(namespace, &all, &everyone).await.unwrap().rows {
        let notices = store.notices(&row.key).await.unwrap();
        questions.push((row, notices));
    }
    let namespace = store.namespace(namespace).await.unwrap();
    Dump { runs, workers, schedules, namespace, gates, depths, triggers, kept, questions }
}

/// I1, I2, I4, I9 and I11, read off one run and its events.
fn invariants(run: &Run, events: &[Event], shown: &str) {
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    let expected: Vec<u64> = (run.first_seq..).take(events.len()).collect();
    assert_eq!(numbers, expected, "a gap in {}; {shown}", run.id);
    let (mut recorded, mut waits) = (HashSet::new(), HashSet::new());
    let (mut ends, mut reopened, mut handlers) = (0, 0, HashSet::new());
    for event in events {
        match &event.kind {
            EventKind::StepCompleted { step, .. } => {
                assert!(recorded.insert(step.clone()), "{step} of {} recorded twice; {shown}", run.id);
            }
            EventKind::WaitEnded { step, failure: None, .. } => {
                assert!(recorded.insert(step.clone()), "{step} of {} recorded twice; {shown}", run.id);
                waits.insert(step.clone());
            }
            // A wait that the code dropped before it heard has no result: its signal lies there again.
            EventKind::StepClosed { step, .. } => {
                if waits.remove(step) {
                    recorded.remove(step);
                }
            }
            EventKind::RunCompleted
            | EventKind::RunFailed { .. }
            | EventKind::RunCancelled { .. }
            | EventKind::RunTimedOut { .. } => ends += 1,
            EventKind::RunStarted
            | EventKind::RunClaimed { .. }
            | EventKind::StepStarted { .. }
            | EventKind::StepFailed { .. }
            | EventKind::SleepScheduled { .. }
            | EventKind::SleepOver { .. }
            | EventKind::RunParked { .. }
            | EventKind::RunReleased { .. }
            | EventKind::LeaseLost { .. }
            | EventKind::RunPaused { .. }
            | EventKind::RunResumed { .. }
            | EventKind::StepProgressed { .. }
            | EventKind::RunRetried { .. }
            | kagzi_model::only_told!()
            | EventKind::SignalReceived { .. }
            | EventKind::WaitBegan { .. }
            | EventKind::WaitEnded { .. }
            | EventKind::ChannelClosed { .. }
            | EventKind::PromiseMade { .. }
            | EventKind::PromiseBeat { .. }
            | EventKind::ValueSet { .. }
            | EventKind::ChildStarted { .. }
            | EventKind::ChildrenClosed { .. }
            | EventKind::LabelSet { .. } => {}
            EventKind::RunContinued { generation, .. } => {
                assert_eq!((event.seq, *generation), (run.first_seq, run.generation), "{shown}");
            }
            EventKind::RunReopened { .. } => reopened += 1,
            EventKind::Unknown { name, .. } => panic!("nobody here writes '{name}'; {shown}"),
            EventKind::HandlerStarted { handler, .. } => {
                assert!(handlers.insert(*handler), "{} has {handler} twice; {shown}", run.id);
            }
        }
    }
    let expected = reopened + usize::from(run.state.finished());
    assert_eq!(ends, expected, "{} ended {ends} times; {shown}", run.id);
    let paused = matches!(run.state, State::Paused { .. });
    // One that waits for a signal has no time at which it goes on by itself.
    let waits = run.due_at().is_some() || run.state.parked().is_some();
    let reasons = [waits, run.lease().is_some(), paused];
    let count = reasons.into_iter().filter(|reason| *reason).count();
    assert_eq!(count, usize::from(!run.state.finished()), "{} has {count} reasons; {shown}", run.id);
    // The two views on events must at least hold together.
    assert!(recorded.len() <= journal(events).len());
    assert!(recorded.len() <= attempts(events).len());
}

/// I19: a question is open exactly as long as its run waits for it. I20: nothing is sent about a closed one
/// but that it is closed.
fn asked_and_answered(dump: &Dump, shown: &str) {
    let mut waited = HashSet::new();
    for (view, events) in &dump.runs {
        let run = &view.run;
        let mut seen = Aggregate::before_history(run.clone());
        events.iter().for_each(|event| seen.absorb(event.at, &event.kind));
        let mail = seen.mail.as_deref();
        for (step, id) in mail.iter().flat_map(|mail| mail.questions()) {
            let answered = mail.is_some_and(|mail| mail.next(&person_channel(step)).is_some());
            waited.insert((*id, answered));
        }
    }
    for (row, notices) in &dump.questions {
        let id = row.key.id;
        if row.state.is_open() {
            assert!(waited.remove(&(id, false)), "nobody waits for {id}; {shown}");
        } else {
            waited.remove(&(id, true));
            let due = notices.iter().filter(|notice| notice.next_at.is_some());
            let late = due.filter(|notice| notice.message != Message::NoLongerNeeded).count();
            assert_eq!(late, 0, "something is still sent about {id}; {shown}");
        }
    }
    assert!(waited.is_empty(), "nobody can answer {waited:?}; {shown}");
}

/// I7: nobody holds more than it may, and the counts are those of the rows.
fn within_limits(dump: &Dump, shown: &str) {
    let mut held: HashMap<WorkerId, u32> = HashMap::new();
    for lease in dump.runs.iter().filter_map(|(view, _)| view.run.lease()) {
        *held.entry(lease.worker).or_default() += 1;
    }
    for WorkerView { worker, active } in &dump.workers {
        let count = held.get(&worker.id).copied().unwrap_or(0);
        assert_eq!(*active, count, "the count of {} is wrong; {shown}", worker.id);
        let max = worker.registration.max_concurrent;
        assert!(count <= max, "{} holds {count} of {max}; {shown}", worker.id);
    }
}
