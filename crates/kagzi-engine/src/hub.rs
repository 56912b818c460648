//! The hub: committed facts go to whoever waits for them in this process.

mod alarm;

use std::collections::{BTreeMap, HashMap};

use kagzi_model::{Name, RunId, State, Timestamp, WorkerId};
use kagzi_store::{Finished, LostLease, Observer, SignalNotice};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tracing::{debug, info};

use self::alarm::Alarm;
use crate::{SessionEvent, SweepStats, ask::Askers, cut_off::CutOff, journals::Journals, running::Running};

/// Most runs remembered as started here and not ended. Beyond it all are forgotten: a waiter then reads the
/// store first.
const LIVE_MAX: usize = 100_000;

/// Outputs above this are not handed to waiters but read by them. A client may wait for thousands of runs and
/// not take what it waits for: what is handed over is held until it does.
const TOLD_BYTES_MAX: usize = 8 * 1024;

/// Waiters and sessions of this process.
#[derive(Default)]
pub struct Hub {
    waiters: Mutex<Waiters>,
    sessions: Mutex<HashMap<WorkerId, (u64, mpsc::UnboundedSender<SessionEvent>)>>,
    pub(crate) running: Running,
    pub(crate) cut_off: CutOff,
    pub(crate) askers: Askers,
    /// Journals of long runs that are kept for their next assignment.
    pub(crate) journals: Journals,
    /// What the sweeps of this server did.
    pub sweeps: SweepStats,
    pub(crate) outcomes: Mutex<HashMap<&'static str, u64>>,
    sweep: Alarm,
    schedules: Alarm,
    events: Alarm,
    questions: Alarm,
}

/// Somebody who waits for the end of a run, of the namespace that he named.
struct Waiter {
    namespace: Name,
    end: oneshot::Sender<Told>,
}

/// What somebody who waits for the end of a run is told.
pub(crate) enum Told {
    Finished(Box<Finished>),
    /// It waits for a person, and may do so for long.
    Paused,
}

#[derive(Default)]
struct Waiters {
    /// By run, and by a number of their own: any number of clients may wait for one run, so nobody may have
    /// to look at all of them to find one.
    by_run: BTreeMap<(RunId, u64), Waiter>,
    last: u64,
    /// Started here and not ended as far as we know: a waiter for a run that this process started may skip
    /// the first read, because its end is always announced here.
    live: HashMap<RunId, Name>,
}

impl Waiters {
    /// Everybody who waits for a run; nobody does any more.
    fn take(&mut self, run: RunId) -> Vec<Waiter> {
        let numbers = self.by_run.range((run, 0)..=(run, u64::MAX)).map(|(key, _)| *key);
        let keys: Vec<_> = numbers.collect();
        keys.iter().filter_map(|key| self.by_run.remove(key)).collect()
    }
}

/// A place among those who wait. It is left when it is dropped.
pub(crate) struct Subscription<'h> {
    hub: &'h Hub,
    run: RunId,
    number: u64,
    pub end: oneshot::Receiver<Told>,
}

impl Drop for Subscription<'_> {
    fn drop(&mut self) {
        self.hub.waiters.lock().by_run.remove(&(self.run, self.number));
    }
}

impl Hub {
    /// Remembers a run that is about to be started.
    pub(crate) fn starting(&self, run: RunId, namespace: Name) {
        let mut waiters = self.waiters.lock();
        if waiters.live.len() >= LIVE_MAX {
            waiters.live.clear();
        }
        waiters.live.insert(run, namespace);
    }

    /// Forgets a run that was not started after all, or has ended elsewhere.
    pub(crate) fn not_live(&self, run: RunId) {
        self.waiters.lock().live.remove(&run);
    }

    /// Subscribes to the end of a run. `true` says that it has not ended yet as far as we know.
    pub(crate) fn subscribe(&self, namespace: &Name, run: RunId) -> (Subscription<'_>, bool) {
        let (send, end) = oneshot::channel();
        let mut waiters = self.waiters.lock();
        let live = waiters.live.get(&run) == Some(namespace);
        waiters.last += 1;
        let number = waiters.last;
        waiters.by_run.insert((run, number), Waiter { namespace: namespace.clone(), end: send });
        (Subscription { hub: self, run, number, end }, live)
    }

    /// Every run that somebody waits for.
    pub(crate) fn waited_for(&self) -> Vec<(Name, RunId)> {
        let waiters = self.waiters.lock();
        let all = waiters.by_run.iter().map(|((run, _), waiter)| (waiter.namespace.clone(), *run));
        let mut runs: Vec<(Name, RunId)> = all.collect();
        // In the order of runs; nearly always all who wait for one name the same namespace.
        runs.dedup();
        runs
    }

    /// Connects a worker's session; a former one of the same worker is told that it was replaced.
    pub(crate) fn connect(&self, worker: WorkerId, id: u64, events: mpsc::UnboundedSender<SessionEvent>) {
        self.cut_off.end(worker);
        if let Some((_, former)) = self.sessions.lock().insert(worker, (id, events)) {
            // It may be gone already.
            let _ = former.send(SessionEvent::Replaced);
        }
    }

    /// Removes a session, unless another has taken its place: then the answer is false.
    pub(crate) fn disconnect(&self, worker: WorkerId, id: u64) -> bool {
        let mut sessions = self.sessions.lock();
        let current = sessions.get(&worker).is_some_and(|(current, _)| *current == id);
        if current {
            sessions.remove(&worker);
        }
        current
    }

    /// Whether the worker has a session here.
    pub(crate) fn connected(&self, worker: WorkerId) -> bool {
        self.sessions.lock().contains_key(&worker)
    }

    /// Sends an event to a worker's session, if it is connected here.
    pub(crate) fn tell(&self, worker: WorkerId, event: SessionEvent) {
        if let Some((_, events)) = self.sessions.lock().get(&worker) {
            // A session that just ended needs no news.
            let _ = events.send(event);
        }
    }

    /// Returns at once with the time when something is due before `at`, and else when that becomes known.
    pub(crate) async fn due_before(&self, at: Timestamp) -> Timestamp {
        self.sweep.before(at).await
    }

    /// The same for questions to people.
    pub(crate) async fn question_before(&self, at: Timestamp) -> Timestamp {
        self.questions.before(at).await
    }

    /// The same for schedules.
    pub(crate) async fn schedule_before(&self, at: Timestamp) -> Timestamp {
        self.schedules.before(at).await
    }

    /// The same for published events.
    pub(crate) async fn events_before(&self, at: Timestamp) -> Timestamp {
        self.events.before(at).await
    }

    /// How many worker streams are open.
    pub fn sessions(&self) -> usize {
        self.sessions.lock().len()
    }

    /// Runs ended since the start, by outcome.
    pub fn outcomes(&self) -> Vec<(&'static str, u64)> {
        let mut outcomes: Vec<_> = self.outcomes.lock().iter().map(|(name, n)| (*name, *n)).collect();
        outcomes.sort_unstable();
        outcomes
    }
}

impl Observer for Hub {
    fn finished(&self, finished: Finished) {
        let id = finished.run.id;
        log_end(&finished);
        self.running.forget(id);
        self.journals.forget(id);
        self.askers.ring(id);
        *self.outcomes.lock().entry(finished.run.state.status().name()).or_default() += 1;
        let waiting = {
            let mut waiters = self.waiters.lock();
            waiters.live.remove(&id);
            waiters.take(id)
        };
        // Dropping the senders wakes the waiters, which then read for themselves, when they have room for it.
        let large = finished.output.as_ref().is_some_and(|output| output.data.len() > TOLD_BYTES_MAX);
        for waiter in waiting.into_iter().filter(|_| !large) {
            // The waiter may have given up.
            let _ = waiter.end.send(Told::Finished(Box::new(finished.clone())));
        }
    }

    fn paused(&self, run: RunId) {
        let waiting = self.waiters.lock().take(run);
        for waiter in waiting {
            // The waiter may have given up.
            let _ = waiter.end.send(Told::Paused);
        }
    }

    fn ended_elsewhere(&self, runs: &[RunId]) {
        runs.iter().for_each(|run| self.running.forget(*run));
        runs.iter().for_each(|run| self.askers.ring(*run));
        // Dropping the senders wakes the waiters, which then read for themselves.
        let mut waiters = self.waiters.lock();
        for run in runs {
            waiters.live.remove(run);
            waiters.take(*run);
        }
    }

    fn commit_unanswered(&self) {
        self.askers.ring_all();
        let mut waiters = self.waiters.lock();
        waiters.by_run.clear();
        waiters.live.clear();
    }

    fn sweep_due(&self, at: Timestamp) {
        self.sweep.ring(at);
    }

    fn question_due(&self, at: Timestamp) {
        self.questions.ring(at);
    }

    fn schedule_due(&self, at: Timestamp, _changed: bool) {
        self.schedules.ring(at);
    }

    fn events_due(&self) {
        self.events.ring(Timestamp(0));
    }

    fn lease_lost(&self, lost: LostLease) {
        self.running.forget(lost.run);
        self.tell(lost.worker, SessionEvent::Lost(lost));
    }

    fn replied(&self, run: RunId) {
        self.askers.ring(run);
    }

    fn signalled(&self, notice: SignalNotice) {
        self.tell(notice.worker, SessionEvent::Signalled(notice));
    }
}

/// Bad ends are an operator's business; there are too many good ones.
fn log_end(finished: &Finished) {
    let run = &finished.run;
    let (namespace, outcome) = (&run.namespace, run.state.status().name());
    let (workflow_type, task_queue) = (&run.workflow_type, &run.task_queue);
    match &run.state {
        State::Failed { failure } | State::TimedOut { failure } => {
            let code = &failure.code;
            info!(%namespace, run = %run.id, %workflow_type, %task_queue, outcome, %code, "run ended badly");
        }
        State::Completed
        | State::Cancelled { .. }
        | State::Ready { .. }
        | State::Leased(_)
        | State::Waiting(_)
        | State::Paused { .. } => {
            debug!(%namespace, run = %run.id, %workflow_type, %task_queue, outcome, "run ended");
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot::error::TryRecvError;
    use uuid::Uuid;

    use super::*;
    use crate::running::RunningStep;

    fn shop() -> Name {
        Name::from("shop")
    }

    fn started(hub: &Hub) -> RunId {
        let run = RunId(Uuid::now_v7());
        hub.starting(run, shop());
        run
    }

    #[test]
    fn a_run_is_trusted_from_its_start_to_its_end_and_in_its_namespace_only() {
        let hub = Hub::default();
        let run = started(&hub);

        assert!(hub.subscribe(&shop(), run).1);
        assert!(!hub.subscribe(&Name::from("other"), run).1);
        hub.not_live(run);
        assert!(!hub.subscribe(&shop(), run).1);
    }

    #[test]
    fn an_end_elsewhere_wakes_who_waits_and_is_remembered() {
        let hub = Hub::default();
        let (run, other) = (started(&hub), started(&hub));
        let (mut end, _) = hub.subscribe(&shop(), run);
        let (mut untouched, _) = hub.subscribe(&shop(), other);

        hub.ended_elsewhere(&[run]);

        assert_eq!(end.end.try_recv().err(), Some(TryRecvError::Closed));
        assert_eq!(untouched.end.try_recv().err(), Some(TryRecvError::Empty));
        assert!(!hub.subscribe(&shop(), run).1);
        assert!(hub.subscribe(&shop(), other).1);
    }

    #[test]
    fn steps_of_a_run_that_went_on_elsewhere_are_forgotten() {
        let hub = Hub::default();
        let (run, other) = (started(&hub), started(&hub));
        let step = RunningStep {
            path: Name::from("charge"),
            position: 0,
            attempt: 1,
            since: Timestamp(1),
            told_at: Timestamp(1),
            epoch: 1,
            namespace: shop(),
            timeout_ms: None,
            policy: Default::default(),
        };
        hub.running.begin(run, step.clone());
        hub.running.begin(other, step);

        hub.ended_elsewhere(&[run]);

        assert_eq!(hub.running.of(run, 1).len(), 0);
        assert_eq!(hub.running.of(other, 1).len(), 1);
    }

    #[test]
    fn after_a_commit_without_an_answer_everybody_looks() {
        let hub = Hub::default();
        let run = started(&hub);
        let (mut end, _) = hub.subscribe(&shop(), run);

        hub.commit_unanswered();

        assert_eq!(end.end.try_recv().err(), Some(TryRecvError::Closed));
        assert!(!hub.subscribe(&shop(), run).1);
    }

    #[test]
    fn who_waits_is_not_forgotten_when_too_many_runs_are_remembered() {
        let hub = Hub::default();
        let run = started(&hub);
        let (mut end, _) = hub.subscribe(&shop(), run);

        for _ in 0..LIVE_MAX {
            started(&hub);
        }

        assert_eq!(end.end.try_recv().err(), Some(TryRecvError::Empty));
        assert!(!hub.subscribe(&shop(), run).1);
    }
}
