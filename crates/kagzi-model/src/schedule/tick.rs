//! The decision what to fire: now, by this row, with these runs still going.

use super::{Backfill, LastRun, Overlap, Schedule, ScheduledBy, Timetable, Verdict, key};
use crate::{RunId, RunOptions, StartRun, Timestamp, limits};

/// What a tick decided. Apply it in one commit, then call [`Tick::settle`] for the row to write.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    schedule: Schedule,
    pub fires: Vec<Fire>,
    /// Runs to cancel before the new ones start.
    pub cancel: Vec<RunId>,
    /// Runs to terminate before the new ones start.
    pub terminate: Vec<RunId>,
}

/// One run to start.
#[derive(Debug, Clone, PartialEq)]
pub struct Fire {
    pub nominal_at: Timestamp,
    pub cause: Cause,
    pub start: StartRun,
}

/// Why a run starts now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Its time has come, now or while nobody fired it.
    Due,
    /// The run before it has ended.
    Buffered,
    /// Somebody asked for a past range.
    Backfill,
}

/// Decides one round. `going` are those of the row's `running` that have not ended. At most `slice` runs are
/// started; what is left keeps the schedule due, behind the others.
pub fn tick(
    now: Timestamp,
    schedule: &Schedule,
    timetable: &Timetable,
    going: Vec<RunId>,
    slice: usize,
) -> Tick {
    let mut round = Round { now, slice, schedule: schedule.clone(), times: Vec::new(), end: Verdict::Start };
    round.schedule.state.running = going;
    if round.schedule.state.paused.is_none() {
        round.start_buffered();
        round.leave_out_missed(timetable);
        round.take_due(timetable);
    }
    round.take_backfills(timetable);
    round.into_tick()
}

struct Round {
    now: Timestamp,
    slice: usize,
    schedule: Schedule,
    times: Vec<(Timestamp, Cause)>,
    /// How to end what runs, if at all: Cancel or Terminate.
    end: Verdict,
}

impl Round {
    fn busy(&self) -> bool {
        !self.schedule.state.running.is_empty() || !self.times.is_empty()
    }

    fn full(&self) -> bool {
        self.times.len() >= self.slice
    }

    fn start_buffered(&mut self) {
        let at_once = self.schedule.plan.overlap == Overlap::Allow;
        while !self.full() && (at_once || !self.busy()) {
            let Some(at) = self.schedule.state.buffer.pop_front() else { return };
            self.times.push((at, Cause::Buffered));
        }
    }

    /// Of more missed times than are made up for, the oldest are left out and counted.
    fn leave_out_missed(&mut self, timetable: &Timetable) {
        let state = &mut self.schedule.state;
        // A time that jitter still holds back is not missed.
        let to = self.now.plus_ms(-self.schedule.plan.jitter_ms);
        let keep = u64::from(self.schedule.plan.max_catchup);
        if to > state.decided_until {
            let (from, missed) = timetable.newest(keep, state.decided_until, to);
            state.decided_until = from;
            state.missed_total += missed;
        }
    }

    fn take_due(&mut self, timetable: &Timetable) {
        while let Some(at) = timetable.next_after(self.schedule.state.decided_until) {
            if self.schedule.start_of(at) > self.now {
                return;
            }
            let (busy, waiting) = (self.busy(), self.schedule.state.buffer.len());
            let room = limits::SCHEDULE_BUFFER_MAX.saturating_sub(waiting);
            let verdict = self.schedule.plan.overlap.verdict(busy, waiting, room);
            let state = &mut self.schedule.state;
            match verdict {
                Verdict::Start if self.times.len() >= self.slice => return,
                Verdict::Start => self.times.push((at, Cause::Due)),
                Verdict::Skip => state.overlapped_total += 1,
                Verdict::Buffer => state.buffer.push_back(at),
                Verdict::Cancel | Verdict::Terminate => {
                    // Of several times that are due together the newest wins; the others never start.
                    state.overlapped_total += self.times.len() as u64;
                    self.times = vec![(at, Cause::Due)];
                    self.end = verdict;
                }
            }
            state.decided_until = at;
        }
    }

    fn take_backfills(&mut self, timetable: &Timetable) {
        while !self.full()
            && let Some(Backfill { after, to, at_once }) = self.schedule.state.backfills.front().copied()
        {
            let state = &self.schedule.state;
            // While paused the buffer waits for a person, and what a person asked for does not wait for it.
            if !at_once && (self.busy() || !state.buffer.is_empty() && state.paused.is_none()) {
                return;
            }
            match timetable.next_after(after).filter(|at| *at <= to) {
                Some(at) => {
                    self.schedule.state.backfills[0].after = at;
                    self.times.push((at, Cause::Backfill));
                }
                None => drop(self.schedule.state.backfills.pop_front()),
            }
        }
    }

    fn into_tick(self) -> Tick {
        let Round { now, schedule, times, end, .. } = self;
        let numbered = times.into_iter().zip(schedule.state.started_total..);
        let fires = numbered.map(|(time, number)| fire(now, &schedule, time, number)).collect();
        let going = schedule.state.running.clone();
        let (cancel, terminate) = match end {
            Verdict::Cancel => (going, Vec::new()),
            Verdict::Terminate => (Vec::new(), going),
            Verdict::Start | Verdict::Skip | Verdict::Buffer => (Vec::new(), Vec::new()),
        };
        Tick { schedule, fires, cancel, terminate }
    }
}

/// The run for a nominal time.
fn fire(now: Timestamp, schedule: &Schedule, (at, cause): (Timestamp, Cause), number: u64) -> Fire {
    let id = key::run_id(schedule, at, now, number);
    let start = start(schedule, id, at);
    Fire {
        nominal_at: at,
        cause,
        start: StartRun { business_id: Some(key::business_id(&schedule.id, at)), ..start },
    }
}

/// A run of the schedule, its business id still open.
pub(super) fn start(schedule: &Schedule, id: RunId, at: Timestamp) -> StartRun {
    let plan = &schedule.plan;
    StartRun {
        namespace: schedule.namespace.clone(),
        id,
        business_id: None,
        workflow_type: plan.workflow_type.clone(),
        task_queue: plan.task_queue.clone(),
        input: schedule.input.clone(),
        // Zero is no timeout, as for every start.
        deadline_at: None,
        options: RunOptions {
            scheduled: Some(ScheduledBy { schedule: schedule.id.clone(), at }),
            ..plan.options.clone()
        },
        labels: plan.labels.clone(),
        signals: Vec::new(),
    }
}

impl Tick {
    /// The row to write, given which of the fires became new runs.
    pub fn settle(mut self, now: Timestamp, timetable: &Timetable, started: &[RunId]) -> Schedule {
        let ended = |run: &RunId| self.cancel.contains(run) || self.terminate.contains(run);
        let going: Vec<RunId> =
            self.schedule.state.running.iter().copied().filter(|run| !ended(run)).collect();
        self.schedule.state.running = going;
        for fire in self.fires.iter().filter(|fire| started.contains(&fire.start.id)) {
            self.schedule.note_started(fire.start.id, fire.nominal_at, now);
        }
        self.schedule.arm(now, timetable);
        self.schedule
    }
}

impl Schedule {
    /// Remembers a new run.
    pub fn note_started(&mut self, run: RunId, nominal_at: Timestamp, now: Timestamp) {
        let state = &mut self.state;
        state.started_total += 1;
        state.last = Some(LastRun { run, nominal_at, started_at: now });
        let keep = match self.plan.overlap {
            // Nothing asks for them; the newest is kept in case the policy changes.
            Overlap::Allow if state.backfills.is_empty() => 1,
            Overlap::Allow
            | Overlap::Skip
            | Overlap::BufferOne
            | Overlap::BufferAll
            | Overlap::CancelPrevious
            | Overlap::TerminatePrevious => limits::SCHEDULE_RUNNING_MAX,
        };
        state.running.push(run);
        let surplus = state.running.len().saturating_sub(keep);
        state.running.drain(..surplus);
    }

    /// Remembers runs of its that go although it did not start them just now: somebody restarted them, or let
    /// them go on after their end. False when that changes nothing, because nobody asks for them.
    pub fn note_going(&mut self, runs: &[RunId]) -> bool {
        let known = self.state.running.len();
        let new = runs.iter().filter(|run| !self.state.running.contains(run));
        let new: Vec<RunId> = new.copied().filter(|_| self.plan.overlap != Overlap::Allow).collect();
        self.state.running.extend(new);
        let surplus = self.state.running.len().saturating_sub(limits::SCHEDULE_RUNNING_MAX);
        let changed = self.state.running.len() > known;
        self.state.running.drain(..surplus);
        changed
    }

    /// Nothing is decided before this time; what is due by then is made up for, as after an outage.
    pub fn hold_until(&mut self, at: Timestamp) {
        self.state.next_at = self.state.next_at.map(|_| at);
    }

    /// Sets the time at which there is something to do next.
    pub(super) fn arm(&mut self, now: Timestamp, timetable: &Timetable) {
        let busy = !self.state.running.is_empty();
        let waits = !self.state.buffer.is_empty();
        let backfill = self
            .state
            .backfills
            .front()
            .is_some_and(|backfill| backfill.at_once || !busy && (!waits || self.state.paused.is_some()));
        let next = if backfill {
            Some(now)
        } else if self.state.paused.is_some() {
            None
        } else if waits && (!busy || self.plan.overlap == Overlap::Allow) {
            Some(now)
        } else {
            timetable.next_after(self.state.decided_until).map(|at| self.start_of(at))
        };
        // What is still due after its slice queues behind whatever was due before now.
        self.state.next_at = next.map(|at| at.max(now));
    }

    /// Whether the decision depends on which of its runs still go.
    pub fn asks_for_running(&self) -> bool {
        match self.plan.overlap {
            Overlap::Allow => self.state.backfills.iter().any(|backfill| !backfill.at_once),
            Overlap::Skip
            | Overlap::BufferOne
            | Overlap::BufferAll
            | Overlap::CancelPrevious
            | Overlap::TerminatePrevious => true,
        }
    }
}
