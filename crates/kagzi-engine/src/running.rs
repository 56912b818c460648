//! Steps that are being executed now: told by workers, kept in memory, lost without harm.

use std::collections::{HashMap, VecDeque};

use kagzi_model::{Command, LeaseRef, Millis, Name, RetryPolicy, RunId, RunKey, StepRef, Timestamp, act};
use parking_lot::Mutex;

/// Most runs whose steps are remembered, and most steps of one run. When there are more, those that were told
/// of longest ago are forgotten: of them `why` and the step list know a little less, and the server does not
/// end their steps by itself unless they were written down.
const RUNS_MAX: usize = 100_000;
const STEPS_PER_RUN_MAX: usize = 1_000;
/// Most steps that wait to be written down.
const UNWRITTEN_MAX: usize = 200_000;

/// A step that is being executed.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningStep {
    pub path: Name,
    pub position: u32,
    pub attempt: u32,
    pub since: Timestamp,
    /// When its worker last said so: later than `since` after a reconnect.
    pub told_at: Timestamp,
    pub epoch: u64,
    pub namespace: Name,
    /// How long after `since` the server ends the attempt, and by which policy it is retried.
    pub timeout_ms: Option<Millis>,
    pub policy: RetryPolicy,
}

impl RunningStep {
    fn timeout_at(&self) -> Option<Timestamp> {
        self.timeout_ms.map(|ms| self.since.plus_ms(ms))
    }
}

/// What runs where.
#[derive(Default)]
pub struct Running {
    steps: Mutex<HashMap<RunId, Vec<RunningStep>>>,
    /// Steps that began and are not written down, in the order in which they began.
    unwritten: Mutex<VecDeque<(RunId, RunningStep)>>,
}

impl Running {
    /// A worker says that a step began, or that it still runs.
    pub fn begin(&self, run: RunId, step: RunningStep) {
        let mut steps = self.steps.lock();
        if steps.len() >= RUNS_MAX && !steps.contains_key(&run) {
            forget_oldest(&mut steps);
        }
        let list = steps.entry(run).or_default();
        list.retain(|known| known.epoch == step.epoch && known.path != step.path);
        if list.len() >= STEPS_PER_RUN_MAX {
            return;
        }
        list.push(step.clone());
        drop(steps);
        let mut unwritten = self.unwritten.lock();
        if unwritten.len() < UNWRITTEN_MAX {
            unwritten.push_back((run, step));
        }
    }

    /// Runs with a step that should have ended by `now`, although its worker said after `told_after` that it
    /// runs.
    pub fn overdue(
        &self,
        now: Timestamp,
        told_after: Timestamp,
        (limit, losses_max): (usize, u32),
    ) -> Vec<Command> {
        let steps = self.steps.lock();
        let late = |step: &RunningStep| {
            step.told_at >= told_after && step.timeout_at().is_some_and(|timeout_at| timeout_at <= now)
        };
        let expire = |(run, list): (&RunId, &Vec<RunningStep>)| {
            let namespace = list.iter().find(|step| late(step))?.namespace.clone();
            Some(RunKey::new(namespace, *run).duty(act::Expire { losses_max }))
        };
        steps.iter().filter_map(expire).take(limit).collect()
    }

    /// Steps that began before `before` and still run: now they are worth a line of history, so that the
    /// server can time them out even after a restart. Most steps end sooner and cost nothing.
    pub fn to_write(&self, before: Timestamp, limit: usize) -> Vec<Command> {
        let mut commands = Vec::new();
        let mut unwritten = self.unwritten.lock();
        while commands.len() < limit
            && unwritten.front().is_some_and(|(_, step)| step.since <= before)
            && let Some((run, step)) = unwritten.pop_front()
        {
            let running = self.of(run, step.epoch);
            if running.iter().any(|known| known.path == step.path && known.attempt == step.attempt) {
                let lease = LeaseRef { namespace: step.namespace, run, epoch: step.epoch };
                let named = StepRef { path: step.path, position: step.position };
                // Of a step that is told again a part has passed.
                let passed_ms = step.told_at.remaining_ms(step.since);
                let timeout_ms = step.timeout_ms.map(|ms| ms.saturating_sub(passed_ms).max(0));
                let policy = step.policy;
                commands.push(lease.report(act::BeginStep {
                    step: named,
                    timeout_ms,
                    standard_ms: None,
                    policy,
                }));
            }
        }
        commands
    }

    /// A step ended.
    pub fn end(&self, run: RunId, path: &Name) {
        let mut steps = self.steps.lock();
        if let Some(list) = steps.get_mut(&run) {
            list.retain(|known| known.path != *path);
            if list.is_empty() {
                steps.remove(&run);
            }
        }
    }

    /// The run ended or left its worker.
    pub fn forget(&self, run: RunId) {
        self.steps.lock().remove(&run);
    }

    /// What runs now under this lease.
    pub fn of(&self, run: RunId, epoch: u64) -> Vec<RunningStep> {
        let steps = self.steps.lock();
        let list = steps.get(&run).map(Vec::as_slice).unwrap_or_default();
        list.iter().filter(|step| step.epoch == epoch).cloned().collect()
    }
}

/// Makes room for a tenth. Entries stay behind when nobody tells that their run left its worker, and those
/// must not stand in the way of runs that go on.
fn forget_oldest(steps: &mut HashMap<RunId, Vec<RunningStep>>) {
    let told = |list: &[RunningStep]| list.iter().map(|step| step.told_at).max();
    let mut times: Vec<_> = steps.values().map(|list| told(list)).collect();
    let (_, last_forgotten, _) = times.select_nth_unstable(RUNS_MAX / 10);
    let last_forgotten = *last_forgotten;
    let mut left = RUNS_MAX / 10;
    steps.retain(|_, list| {
        let forgotten = left > 0 && told(list) <= last_forgotten;
        left -= usize::from(forgotten);
        !forgotten
    });
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn step(at: i64) -> RunningStep {
        RunningStep {
            path: "charge".into(),
            position: 0,
            attempt: 1,
            since: Timestamp(at),
            told_at: Timestamp(at),
            epoch: 1,
            namespace: "shop".into(),
            timeout_ms: Some(1),
            policy: RetryPolicy::default(),
        }
    }

    fn run(n: usize) -> RunId {
        RunId(Uuid::from_u128(n as u128))
    }

    /// A server that has lost a hundred thousand hints would else end no step by itself any more.
    #[test]
    fn entries_that_nobody_takes_back_do_not_keep_new_runs_out() {
        let running = Running::default();
        for n in 0..RUNS_MAX {
            running.begin(run(n), step(n as i64));
        }

        running.begin(run(RUNS_MAX), step(RUNS_MAX as i64));

        assert_eq!(running.of(run(RUNS_MAX), 1).len(), 1, "the new one is noted");
        assert_eq!(running.of(run(0), 1), [], "the one told of longest ago is forgotten");
        assert_eq!(running.of(run(RUNS_MAX - 1), 1).len(), 1);
        assert_eq!(running.steps.lock().len(), RUNS_MAX - RUNS_MAX / 10 + 1);
    }
}
