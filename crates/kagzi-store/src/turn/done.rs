//! What a committed turn leaves to do: whom to answer, to assign and to tell.

use kagzi_model::{GateKey, RunId, State, Timestamp, WorkerId};

use super::Turn;
use crate::{
    Assignment, Backend, Finished, LaneStats, LostLease, QueueKey, SignalNotice, Waiting, hash::HashSet,
};

/// What a committed turn leaves to do.
#[derive(Default)]
pub struct Done {
    pub assignments: Vec<(u64, Assignment)>,
    pub finished: Vec<Finished>,
    pub lost: Vec<LostLease>,
    pub paused: Vec<RunId>,
    pub notices: Vec<SignalNotice>,
    pub replied: Vec<RunId>,
    pub rows: Vec<RunId>,
    /// The earliest time at which a run of this batch must be swept.
    pub sweep_at: Option<Timestamp>,
    /// The earliest time at which a changed schedule has something to do.
    pub schedule_at: Option<Timestamp>,
    /// The earliest time at which a question to a person has something to do.
    pub question_at: Option<Timestamp>,
    /// A person changed a schedule.
    pub schedules_changed: bool,
    /// An event was published that is to be delivered.
    pub events_due: bool,
    pub offline: Vec<WorkerId>,
    /// Workers that take nothing new from now on. Only after the commit: one whose drain was not recorded
    /// goes on.
    pub drained: Vec<WorkerId>,
    /// Keys with runs that nobody here took, on a shared database.
    pub waiting: Vec<Waiting>,
    /// Gates that may let something through now, on a shared database.
    pub opened: Vec<GateKey>,
}

impl<B: Backend> Turn<'_, B> {
    /// Keys whose changed runs are left to wait: now, or for a time at which nobody here may have room.
    pub(super) fn waiting(&self) -> Vec<Waiting> {
        if !self.shared {
            return Vec::new();
        }
        let runs = self.fold.touched.rows.iter().filter_map(|id| self.fold.entry(*id));
        let keys: HashSet<Waiting> = runs
            .map(|entry| &entry.aggregate.run)
            .filter_map(|run| run.due_at().map(|due| (due, QueueKey::of(run))))
            .map(|(due, key)| (due, Waiting { watched: self.board.watches(&key), key }))
            // A timer that somebody here watches rings here.
            .filter(|(due, waiting)| *due <= self.now || !waiting.watched)
            // What a gate holds up here, it holds up everywhere.
            .filter(|(_, waiting)| !self.board.held(&waiting.key))
            .map(|(_, waiting)| waiting)
            .collect();
        keys.into_iter().collect()
    }

    pub(super) fn done(&mut self) -> Done {
        let waiting = self.waiting();
        let opened = self.opened();
        let touched = std::mem::take(&mut self.fold.touched);
        let assignments = std::mem::take(&mut self.assigned)
            .into_iter()
            .filter_map(|(demand, id)| Some((demand, self.assignment(id)?)))
            .collect();
        LaneStats::add(&self.stats.leases_lost, touched.lost.len() as u64);
        let swept_at = |id: &RunId| self.fold.entry(*id).and_then(|entry| entry.aggregate.run.sweep_at());
        let sweep_at = touched.rows.iter().filter_map(swept_at).min();
        Done {
            assignments,
            finished: touched.finished,
            lost: touched.lost,
            paused: touched.paused,
            notices: touched.notices,
            replied: touched.replied,
            sweep_at,
            schedule_at: self.schedules.due_at,
            question_at: self.people.as_ref().and_then(|people| people.due_at),
            schedules_changed: self.schedules.changed,
            events_due: self.topics.due,
            rows: touched.rows,
            offline: std::mem::take(&mut self.offline),
            drained: std::mem::take(&mut self.drained),
            waiting,
            opened,
        }
    }

    pub(super) fn assignment(&self, id: RunId) -> Option<Assignment> {
        let entry = self.fold.entry(id)?;
        let run = entry.aggregate.run.clone();
        debug_assert!(matches!(run.state, State::Leased(_)), "an assigned run is leased");
        Some(Assignment { run, input: entry.input.clone(), fresh: entry.aggregate.steps.is_empty() })
    }
}
