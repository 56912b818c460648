//! Looks into a worker: counts how often step code runs, and stops the worker at a chosen report.

use std::collections::BTreeMap;
use std::future::Future;

use kagzi_proto::v1::{StepRef, report};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::run::uplink::Verdict;

/// A moment at which a worker dies, counted in its reports from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CrashPoint {
    /// The code ran, but what it did was not reported.
    Before(u32),
    /// The server has committed it, but the worker never hears of it.
    After(u32),
}

#[derive(Default)]
pub(crate) struct Probe {
    crash_at: Option<CrashPoint>,
    /// Published values are reports too. They are sent anew by every execution, so a worker that dies after
    /// its first report would never come past them.
    pub(crate) counts_values: bool,
    seen: Mutex<Seen>,
    pub(crate) crashed: CancellationToken,
}

#[derive(Default)]
struct Seen {
    executions: BTreeMap<String, u32>,
    reports: Vec<String>,
}

impl Probe {
    pub(crate) fn new(crash_at: Option<CrashPoint>) -> Probe {
        Probe { crash_at, ..Default::default() }
    }

    /// The same, and published values are reports too.
    pub(crate) fn counting_values(self) -> Probe {
        Probe { counts_values: true, ..self }
    }

    /// How often the code of each step was started, by path.
    pub(crate) fn executions(&self) -> BTreeMap<String, u32> {
        self.seen.lock().executions.clone()
    }

    /// What was reported, in words.
    pub(crate) fn reports(&self) -> Vec<String> {
        self.seen.lock().reports.clone()
    }

    pub(crate) fn step_started(&self, step: Option<&StepRef>) {
        let path = step.map(|step| step.path.clone()).unwrap_or_default();
        *self.seen.lock().executions.entry(path).or_default() += 1;
    }

    /// Lets a report pass, or the worker die before or after it. `said` is what it says, in words.
    pub(crate) async fn watch(&self, said: String, report: impl Future<Output = Verdict>) -> Verdict {
        let number = {
            let reports = &mut self.seen.lock().reports;
            reports.push(said);
            reports.len() as u32
        };
        if self.crash_at == Some(CrashPoint::Before(number)) {
            self.crash().await;
        }
        let verdict = report.await;
        if self.crash_at == Some(CrashPoint::After(number)) {
            self.crash().await;
        }
        verdict
    }

    /// Never returns: whoever waits for `crashed` drops the worker.
    async fn crash(&self) {
        self.crashed.cancel();
        std::future::pending().await
    }
}

/// A report in words.
pub(crate) fn in_words(body: &report::Body) -> String {
    use report::Body;
    let path = |step: &Option<StepRef>| step.as_ref().map_or("?", |step| step.path.as_str()).to_owned();
    match body {
        Body::StepRecorded(recorded) => format!("step '{}' completed", path(&recorded.step)),
        Body::StepsRecorded(recorded) => {
            let paths: Vec<_> = recorded.steps.iter().map(|step| path(&step.step)).collect();
            format!("steps '{}' completed", paths.join("', '"))
        }
        Body::StepClosed(closed) => format!("step '{}' was dropped", path(&closed.step)),
        Body::StepFailed(failed) => format!("step '{}' failed", path(&failed.step)),
        Body::StepProgressed(progressed) => format!("step '{}' progressed", path(&progressed.step)),
        Body::SleepScheduled(sleep) => format!("'{}' began", path(&sleep.step)),
        Body::SleepOver(sleep) => format!("'{}' was over", path(&sleep.step)),
        Body::SignalAwaited(wait) => format!("'{}' waited", path(&wait.step)),
        Body::PromiseMade(made) => format!("promise '{}' was made", made.name),
        Body::ValueSet(set) => format!("value '{}' was set", set.name),
        Body::StartChild(child) => format!("child '{}' was started", path(&child.step)),
        Body::LabelSet(set) => format!("label '{}' was set", set.name),
        Body::RunCompleted(_) => "the run completed".to_owned(),
        Body::RunContinued(_) => "the run continued in place".to_owned(),
        Body::RunFailed(_) => "the run failed".to_owned(),
        Body::RunParked(_) => "the run was parked".to_owned(),
        Body::RunReleased(_) => "the run was given back".to_owned(),
        Body::RunBlocked(_) => "the run was blocked".to_owned(),
    }
}
