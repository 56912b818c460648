//! What a run and its steps spent their time on, for pictures: one line each, made of stretches.

use std::collections::HashMap;

use super::Projection;
use crate::{Event, EventKind, Millis, Name, Timestamp, only_told};

/// What a stretch of time was spent on. Drawn in this order: what is shorter and matters more comes on top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spent {
    /// The run waits for a worker.
    Waiting,
    Sleeping,
    /// It waits for its next attempt.
    Retrying,
    Paused,
    Running,
    Failing,
}

impl Spent {
    pub const ALL: [Spent; 6] =
        [Spent::Waiting, Spent::Sleeping, Spent::Retrying, Spent::Paused, Spent::Running, Spent::Failing];
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    pub from: Timestamp,
    /// None = still going on.
    pub to: Option<Timestamp>,
    pub spent: Spent,
}

/// The stretches of one step, or of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeLine {
    /// None for the run itself.
    pub step: Option<Name>,
    pub stretches: Vec<Stretch>,
    /// Attempts that have ended.
    pub attempts: u32,
}

/// The run first, then its steps in the order in which they were first heard of.
#[derive(Debug, Clone)]
pub struct Timeline {
    lines: Vec<TimeLine>,
    index: HashMap<Name, usize>,
    ended: bool,
}

impl Default for Timeline {
    fn default() -> Self {
        Timeline { lines: vec![TimeLine::default()], index: HashMap::new(), ended: false }
    }
}

impl Timeline {
    /// The run's line, then those of its steps.
    pub fn lines(&self) -> &[TimeLine] {
        &self.lines
    }

    /// Whether the run has ended.
    pub fn ended(&self) -> bool {
        self.ended
    }

    fn step(&mut self, path: &Name) -> &mut TimeLine {
        let place = *self.index.entry(path.clone()).or_insert_with(|| {
            self.lines.push(TimeLine { step: Some(path.clone()), ..TimeLine::default() });
            self.lines.len() - 1
        });
        &mut self.lines[place]
    }

    /// The run has ended, and with it whatever its steps were at.
    fn end(&mut self, at: Timestamp) {
        self.ended = true;
        self.lines[1..].iter_mut().for_each(|line| line.end(at));
    }
}

impl Projection for Timeline {
    fn absorb(&mut self, event: &Event) {
        let at = event.at;
        let run = &mut self.lines[0];
        match &event.kind {
            EventKind::RunStarted | EventKind::RunReleased { .. } | EventKind::RunResumed { .. } => {
                run.begin(Spent::Waiting, at);
            }
            EventKind::RunContinued { .. } => {
                run.begin(Spent::Waiting, at);
                self.lines.truncate(1);
                self.index.clear();
            }
            EventKind::RunReopened { .. } => {
                run.begin(Spent::Waiting, at);
                self.ended = false;
            }
            EventKind::RunClaimed { .. } => run.begin(Spent::Running, at),
            EventKind::RunParked { due_at: Some(due), .. } => run.wait_until(Spent::Sleeping, at, Some(*due)),
            // Only somebody's word lets it go on.
            EventKind::RunParked { due_at: None, .. } => run.begin(Spent::Sleeping, at),
            EventKind::LeaseLost { retry_at, .. } => run.wait_until(Spent::Retrying, at, *retry_at),
            EventKind::RunRetried { at: due, .. } => run.wait_until(Spent::Retrying, at, Some(*due)),
            EventKind::RunPaused { .. } => run.begin(Spent::Paused, at),
            EventKind::RunCompleted | EventKind::RunCancelled { .. } => {
                run.end(at);
                self.end(at);
            }
            EventKind::RunFailed { .. } | EventKind::RunTimedOut { .. } => {
                run.add(Spent::Failing, at, at);
                self.end(at);
            }
            EventKind::StepStarted { step, .. } => self.step(step).begin(Spent::Running, at),
            EventKind::StepCompleted { step, elapsed_ms, .. } => {
                self.step(step).attempt_ended(at, *elapsed_ms);
            }
            EventKind::StepFailed { step, elapsed_ms, retry_at, .. } => {
                let line = self.step(step);
                line.attempt_ended(at, *elapsed_ms);
                line.push(Spent::Failing, at, Some(at));
                if let Some(retry_at) = retry_at {
                    line.push(Spent::Retrying, at, Some(*retry_at));
                }
            }
            EventKind::SleepScheduled { step, until, .. } => self.step(step).add(Spent::Sleeping, at, *until),
            EventKind::WaitBegan { step, until: Some(until), .. }
            | EventKind::ChildStarted { step, until: Some(until), awaited: true, .. } => {
                self.step(step).add(Spent::Sleeping, at, *until);
            }
            EventKind::WaitBegan { step, until: None, .. }
            | EventKind::ChildStarted { step, until: None, awaited: true, .. } => {
                self.step(step).begin(Spent::Sleeping, at);
            }
            EventKind::SleepOver { step }
            | EventKind::WaitEnded { step, .. }
            | EventKind::StepClosed { step, .. } => self.step(step).end(at),
            EventKind::StepProgressed { step, .. } => drop(self.step(step)),
            EventKind::LabelSet { .. }
            | EventKind::PromiseMade { .. }
            | EventKind::PromiseBeat { .. }
            | EventKind::ValueSet { .. }
            | EventKind::SignalReceived { .. }
            | EventKind::ChannelClosed { .. }
            | EventKind::ChildStarted { awaited: false, .. }
            | EventKind::ChildrenClosed { .. }
            | EventKind::HandlerStarted { .. }
            | only_told!()
            | EventKind::Unknown { .. } => {}
        }
    }
}

impl TimeLine {
    /// Ends what was going on, cutting short a wait that somebody ended early.
    fn end(&mut self, at: Timestamp) {
        self.stretches.retain(|stretch| stretch.from <= at);
        if let Some(last) = self.stretches.last_mut()
            && last.to.is_none_or(|to| to > at)
        {
            last.to = Some(at);
        }
    }

    fn push(&mut self, spent: Spent, from: Timestamp, to: Option<Timestamp>) {
        self.stretches.push(Stretch { from, to, spent });
    }

    fn begin(&mut self, spent: Spent, from: Timestamp) {
        self.end(from);
        self.push(spent, from, None);
    }

    fn add(&mut self, spent: Spent, from: Timestamp, to: Timestamp) {
        self.end(from);
        self.push(spent, from, Some(to));
    }

    /// Waits, and from then on for a worker.
    fn wait_until(&mut self, spent: Spent, at: Timestamp, due: Option<Timestamp>) {
        match due {
            Some(due) if due > at => {
                self.add(spent, at, due);
                self.push(Spent::Waiting, due, None);
            }
            Some(_) | None => self.begin(Spent::Waiting, at),
        }
    }

    fn runs(&self) -> bool {
        self.stretches.last().is_some_and(|last| last.to.is_none() && last.spent == Spent::Running)
    }

    /// An attempt ended. Where nobody told that it began, its end and how long it took say so.
    fn attempt_ended(&mut self, at: Timestamp, elapsed_ms: Millis) {
        self.attempts += 1;
        match self.runs() {
            true => self.end(at),
            false => {
                let began = at.plus_ms(-elapsed_ms);
                // Two clocks measure: an attempt never begins before the one before it failed.
                let after = self.stretches.last().map_or(began, |last| last.from);
                self.add(Spent::Running, began.max(after), at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::project;

    fn spent(line: &TimeLine) -> Vec<(Spent, i64, Option<i64>)> {
        line.stretches.iter().map(|part| (part.spent, part.from.0, part.to.map(|to| to.0))).collect()
    }

    #[test]
    fn a_step_that_nobody_told_to_have_begun_ran_as_long_as_it_took_and_its_run_waits_for_the_retry() {
        let step = Name::from("charge");
        let failed = EventKind::StepFailed {
            step: step.clone(),
            position: 0,
            attempt: 1,
            failure: crate::Failure::new("BUSY", "busy"),
            retry_at: Some(Timestamp(30_000)),
            elapsed_ms: 4,
            finality: None,
        };
        let waits = vec![step.clone()];
        let parked = EventKind::RunParked {
            due_at: Some(Timestamp(30_000)),
            closes: vec![],
            opens: vec![],
            waits,
            wake: None,
        };
        let kinds = [(0, EventKind::RunStarted), (10_000, failed), (10_000, parked)];
        let events: Vec<Event> = (1..)
            .zip(kinds)
            .map(|(seq, (at, kind))| Event { seq, at: Timestamp(at), kind, payload: None })
            .collect();

        let timeline: Timeline = project(&events);

        let run = [
            (Spent::Waiting, 0, Some(10_000)),
            (Spent::Sleeping, 10_000, Some(30_000)),
            (Spent::Waiting, 30_000, None),
        ];
        assert_eq!(spent(&timeline.lines()[0]), run);
        let charge = [
            (Spent::Running, 6_000, Some(10_000)),
            (Spent::Failing, 10_000, Some(10_000)),
            (Spent::Retrying, 10_000, Some(30_000)),
        ];
        assert_eq!(spent(&timeline.lines()[1]), charge);
        assert_eq!(timeline.lines()[1].step, Some(step));
        assert!(!timeline.ended());
    }
}
