//! Steps that are being executed now: told by workers, kept in memory, lost without harm.

use std::collections::HashMap;

use kagzi_model::{Name, RunId, Timestamp};
use parking_lot::Mutex;

/// Most runs whose steps are remembered; beyond it `why` and the step list know a little less.
const RUNS_MAX: usize = 100_000;

/// A step that is being executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningStep {
    pub path: Name,
    pub position: u32,
    pub attempt: u32,
    pub since: Timestamp,
    pub epoch: u64,
}

/// What runs where.
#[derive(Default)]
pub struct Running {
    steps: Mutex<HashMap<RunId, Vec<RunningStep>>>,
}

impl Running {
    /// A worker says that a step began.
    pub fn begin(&self, run: RunId, step: RunningStep) {
        let mut steps = self.steps.lock();
        if steps.len() >= RUNS_MAX && !steps.contains_key(&run) {
            return;
        }
        let list = steps.entry(run).or_default();
        list.retain(|known| known.epoch == step.epoch && known.path != step.path);
        list.push(step);
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
