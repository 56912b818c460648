//! The schedules' part of a turn: what is due starts in the same commit that moves the schedule on.

use std::collections::{BTreeMap, BTreeSet};

use kagzi_model::{
    Author, Command, Name, Order, Reply, RunId, RunKey, StartRun, Started, Timestamp, act,
    limits::SCHEDULE_SLICE,
    schedule::{
        Cause, Paused, Schedule, ScheduleChange, ScheduleCommand, ScheduleKey, ScheduleRejection,
        ScheduleRequest, Tick, Timetable, change, tick,
    },
};

use super::{HOUSEKEEPING_MAX, Turn};
use crate::{AsideRow, Backend, DueSchedule, ScheduleReply, StoreError, Swept, table::Table};

/// How long a schedule is left alone whose namespace takes no runs.
const HELD_MS: i64 = 30_000;

/// What a turn did to schedules.
#[derive(Default)]
pub(super) struct ScheduleChanges {
    /// Known for this turn alone: other servers fire them too.
    pub table: Table<Schedule>,
    /// The earliest time at which a changed schedule has something to do.
    pub due_at: Option<Timestamp>,
    /// A person changed one: other servers should look.
    pub changed: bool,
    /// Ended runs that were looked at.
    ends_seen: usize,
}

impl ScheduleChanges {
    /// Takes over a schedule that is new or was changed; it is written with the batch.
    fn put(&mut self, mut schedule: Schedule) -> Schedule {
        schedule.version += 1;
        self.due_at = [self.due_at, schedule.state.next_at].into_iter().flatten().min();
        self.table.put(schedule.clone());
        schedule
    }

    /// Takes over what was claimed: nobody else changes it before the commit.
    fn claimed(&mut self, schedule: &Schedule) {
        if self.table.evict(&schedule.key()) {
            self.table.know(schedule.clone(), ());
        }
    }
}

/// What a schedule does in this turn.
enum Planned {
    Round(Box<Timetable>, Box<Tick>),
    /// Its namespace takes no runs now.
    Held,
    /// Its times are not understood any more, and why.
    NotUnderstood(String),
}

impl<B: Backend> Turn<'_, B> {
    /// Decides a person's request.
    pub(super) async fn schedule(
        &mut self,
        request: &ScheduleRequest,
    ) -> Result<Result<ScheduleReply, ScheduleRejection>, StoreError> {
        let seen = self.load_schedule(&request.key).await?;
        // The repeat of what was done before is answered all the same.
        let repeated = matches!(request.command, ScheduleCommand::Create(_)) && seen.is_some();
        if request.command.makes_runs()
            && !repeated
            && let Err(refused) = self.admit_to(&request.key.namespace).await?
        {
            return Ok(Err(ScheduleRejection::NotAdmitted(refused)));
        }
        let ScheduleChange { mut schedule, write, deleted, start } =
            match change(self.calendar, seen.as_ref(), request) {
                Ok(change) => change,
                Err(rejection) => return Ok(Err(rejection)),
            };
        let mut write = write;
        let mut run = None;
        if let Some(start) = start {
            let (id, at) = (start.id, self.now);
            if let Ok(Reply::Started(Started { run: started, existed })) =
                self.apply(&Command::start(start)).await?
            {
                run = Some((started, existed));
                if !existed {
                    self.fold.touched.going.retain(|run| *run != id);
                    schedule.note_started(id, at, self.now);
                    write = true;
                }
            }
        }
        if deleted {
            self.schedules.table.delete(&request.key);
        } else if write {
            schedule = self.schedules.put(schedule);
        }
        self.schedules.changed |= write;
        Ok(Ok(ScheduleReply { schedule, run, changed: write }))
    }

    /// One bounded round over the schedules that are due: a slice of runs for each, so that the catch-up of
    /// one does not keep the others waiting.
    pub(super) async fn sweep_schedules(
        &mut self,
        schedules_max: usize,
        runs_max: usize,
    ) -> Result<Swept, StoreError> {
        self.flush_before_search().await?;
        let limit = if self.careful { 1 } else { schedules_max };
        let aside = self.stats.aside.schedules();
        let due = self.backend.claim_due_schedules(self.calendar, limit, &aside).await?;
        let mut readable = Vec::with_capacity(due.len());
        for schedule in &due {
            match schedule {
                DueSchedule::Read(schedule) => readable.push(&**schedule),
                DueSchedule::Unreadable(key, uid, why) => {
                    self.stats.aside.put(AsideRow::Schedule(key.clone(), *uid), why, self.now);
                }
            }
        }
        if self.careful {
            self.suspect = readable.first().map(|first| AsideRow::Schedule(first.key(), first.uid));
        }
        let rounds = Box::pin(self.plan_all(&readable, runs_max)).await?;
        let mut count = 0;
        for (place, (schedule, planned)) in rounds.into_iter().enumerate() {
            if self.is_late() && place > 0 {
                break;
            }
            count += Box::pin(self.carry_out(schedule, planned)).await?;
        }
        self.flush_before_search().await?;
        let next_at = self.backend.next_schedule(&self.stats.aside.schedules()).await?;
        // Without any of our own, what is due is in another server's hands.
        let more = !due.is_empty() && next_at.is_some_and(|at| at <= self.calendar);
        Ok(Swept { count, more, next_at })
    }

    /// Tells schedules of runs that somebody restarted, or that go again after their end: what is due while
    /// they go is a matter of the overlap policy, as with runs that the schedule started itself.
    pub(super) async fn follow_going(&mut self) -> Result<(), StoreError> {
        let mut by_schedule: BTreeMap<ScheduleKey, Vec<RunId>> = BTreeMap::new();
        for id in std::mem::take(&mut self.fold.touched.going) {
            let Some(run) = self.fold.entry(id).map(|entry| &entry.aggregate.run) else { continue };
            if let Some(by) = run.options.scheduled.as_ref().filter(|_| !run.state.finished()) {
                let key = ScheduleKey { namespace: run.namespace.clone(), id: by.schedule.clone() };
                by_schedule.entry(key).or_default().push(id);
            }
        }
        if by_schedule.is_empty() {
            return Ok(());
        }
        // Written first, for the same reason as an end is.
        self.flush_before_search().await?;
        for (key, runs) in by_schedule {
            let Some(mut schedule) = self.backend.claim_schedule(&key).await? else { continue };
            self.schedules.claimed(&schedule);
            if schedule.note_going(&runs) {
                self.schedules.put(schedule);
            }
        }
        Ok(())
    }

    /// Lets schedules whose run ended in this batch start what waited for it.
    pub(super) async fn follow_ends(&mut self) -> Result<(), StoreError> {
        while self.schedules.ends_seen < self.fold.touched.finished.len() {
            let ended = &self.fold.touched.finished[self.schedules.ends_seen..];
            let keys: BTreeSet<ScheduleKey> = ended
                .iter()
                .filter_map(|ended| {
                    let scheduled = ended.run.options.scheduled.as_ref()?;
                    let namespace = ended.run.namespace.clone();
                    Some(ScheduleKey { namespace, id: scheduled.schedule.clone() })
                })
                .collect();
            self.schedules.ends_seen = self.fold.touched.finished.len();
            if !keys.is_empty() {
                Box::pin(self.follow_up_schedules(keys.into_iter().collect())).await?;
            }
        }
        Ok(())
    }

    async fn follow_up_schedules(&mut self, keys: Vec<ScheduleKey>) -> Result<(), StoreError> {
        // The end is written first: on a shared database it either waits for a server that is deciding
        // whether this run still goes, and then we see what that one buffered, or it makes that one wait.
        self.flush_before_search().await?;
        let loaded = self.backend.load_schedules(&keys).await?;
        for waiting in loaded.iter().filter(|schedule| schedule.waits_for_an_end()) {
            if let Some(schedule) = self.backend.claim_schedule(&waiting.key()).await? {
                let rounds = Box::pin(self.plan_all(&[&schedule], SCHEDULE_SLICE)).await?;
                for (schedule, planned) in rounds {
                    Box::pin(self.carry_out(schedule, planned)).await?;
                }
            }
        }
        Ok(())
    }

    /// Decides what schedules do, and looks up in one go what carrying it out needs: on a shared database a
    /// thousand of them take as many round trips as one.
    async fn plan_all<'s>(
        &mut self,
        schedules: &[&'s Schedule],
        runs_max: usize,
    ) -> Result<Vec<(&'s Schedule, Planned)>, StoreError> {
        let mut running = Vec::new();
        for schedule in schedules.iter().filter(|schedule| schedule.asks_for_running()) {
            let key = |run: &RunId| RunKey { id: *run, namespace: schedule.namespace.clone() };
            running.extend(schedule.state.running.iter().map(key));
        }
        self.load_found(&running).await?;
        let (mut rounds, mut starts, mut count) = (Vec::with_capacity(schedules.len()), Vec::new(), 0);
        for schedule in schedules {
            let slice = SCHEDULE_SLICE.min(runs_max.saturating_sub(count));
            // Half of the turn's time is for carrying out what is planned.
            let late = self.began.elapsed() > HOUSEKEEPING_MAX / 2 && !rounds.is_empty();
            if slice == 0 || late {
                break;
            }
            let planned = self.plan(schedule, slice).await?;
            if let Planned::Round(_, round) = &planned {
                count += round.fires.len();
                let new = round.fires.iter().map(|fire| &fire.start);
                let new = new.filter(|start| self.fold.lacks_business(start));
                starts.extend(new.filter_map(business_key));
            }
            rounds.push((*schedule, planned));
        }
        if starts.len() > 1 {
            starts.sort_unstable();
            starts.dedup();
            self.look_up_business(starts).await?;
        }
        Ok(rounds)
    }

    /// Decides one schedule; its runs are loaded.
    async fn plan(&mut self, schedule: &Schedule, slice: usize) -> Result<Planned, StoreError> {
        // Before anything is decided: a time that the namespace does not admit now is not lost, and no run is
        // ended to make room for one that may not start.
        if self.admit_to(&schedule.namespace).await?.is_err() {
            return Ok(Planned::Held);
        }
        let timetable = match schedule.plan.timing.timetable() {
            Ok(timetable) => timetable,
            // It was understood when it was made: the time zone database has changed under it.
            Err(error) => return Ok(Planned::NotUnderstood(error.to_string())),
        };
        let going = match schedule.asks_for_running() {
            true => self.still_going(schedule),
            false => schedule.state.running.clone(),
        };
        let round = tick(self.calendar, schedule, &timetable, going, slice);
        Ok(Planned::Round(Box::new(timetable), Box::new(round)))
    }

    /// The schedule as this batch has left it.
    async fn load_schedule(&mut self, key: &ScheduleKey) -> Result<Option<Schedule>, StoreError> {
        if !self.schedules.table.is_settled(key)
            && let Some(loaded) = self.backend.load_schedule(key).await?
        {
            self.schedules.table.know(loaded, ());
        }
        Ok(self.schedules.table.get(key).cloned())
    }

    /// Carries a decision out. Answers with how many runs it started.
    async fn carry_out(&mut self, schedule: &Schedule, planned: Planned) -> Result<usize, StoreError> {
        self.schedules.claimed(schedule);
        let (timetable, round) = match planned {
            Planned::Round(timetable, round) => (timetable, round),
            Planned::Held => {
                let mut held = schedule.clone();
                held.hold_until(self.now.plus_ms(HELD_MS));
                self.schedules.put(held);
                return Ok(0);
            }
            Planned::NotUnderstood(error) => {
                tracing::error!(schedule = %schedule.id, %error, "a schedule is no longer understood, \
                    pausing it");
                let mut schedule = schedule.clone();
                schedule.state.paused = Some(Paused { note: error, since: self.now });
                schedule.state.next_at = None;
                self.schedules.put(schedule);
                return Ok(0);
            }
        };
        let from_buffer = round.fires.iter().filter(|fire| fire.cause == Cause::Buffered).count();
        let reason = || format!("the next run of schedule '{}' takes its place", schedule.id);
        let order = |run: &RunId, order: Order| {
            RunKey::new(schedule.namespace.clone(), *run).order(Author::new("schedule", reason()), order)
        };
        for run in &round.cancel {
            let command = order(run, act::Cancel.into());
            // Refused only when it ended in this very batch.
            let _ = self.apply(&command).await?;
        }
        for run in &round.terminate {
            let _ = self.apply(&order(run, act::Terminate.into())).await?;
        }
        let mut started = Vec::new();
        for fire in &round.fires {
            let mut start = fire.start.clone();
            self.find_business(&start).await?;
            if self.taken_by_another(&start) && !self.made_before(schedule, &start) {
                // The run id follows from the schedule and the time, so there is still one run for it.
                let id = start.business_id.as_deref();
                tracing::warn!(schedule = %schedule.id, id, "a scheduled run's business id is taken by \
                    another run");
                start.business_id = None;
            }
            match self.apply(&Command::start(start)).await? {
                Ok(Reply::Started(Started { existed: false, .. })) => {
                    started.push(fire.start.id);
                    if fire.cause == Cause::Due {
                        let late = self.calendar - schedule.start_of(fire.nominal_at);
                        let late_us = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
                        self.counters.schedule_lateness_us.push(late_us);
                    }
                }
                Ok(_) => {}
                // Made by an earlier schedule of the same name, perhaps: this time has its run.
                Err(rejection) => tracing::warn!(schedule = %schedule.id, %rejection, "not started again"),
            }
        }
        self.fold.touched.going.retain(|run| !started.contains(run));
        let after = round.settle(self.calendar, &timetable, &started);
        let (was, is) = (&schedule.state, &after.state);
        self.counters.schedule_fires += started.len() as u64;
        self.counters.schedule_overlapped += is.overlapped_total - was.overlapped_total;
        self.counters.schedule_missed += is.missed_total - was.missed_total;
        self.counters.schedule_buffered +=
            (is.buffer.len() + from_buffer).saturating_sub(was.buffer.len()) as u64;
        if after != *schedule {
            self.schedules.put(after);
        }
        Ok(started.len())
    }

    /// Whether the run that has the business id of a start was made by the schedule, or by an earlier one of
    /// its name.
    fn made_before(&self, schedule: &Schedule, start: &StartRun) -> bool {
        let Some(taken) = self.fold.taken_by(start) else { return false };
        let row = taken.run.as_ref().and_then(|read| read.as_deref().ok());
        let known = self.fold.entry(taken.id).map(|entry| &entry.aggregate.run);
        known.or(row).is_none_or(|run| run.schedule() == Some(&schedule.id))
    }

    /// Those of its runs that have not ended. They are loaded.
    fn still_going(&self, schedule: &Schedule) -> Vec<RunId> {
        let goes =
            |run: &RunId| self.fold.entry(*run).is_some_and(|entry| !entry.aggregate.run.state.finished());
        schedule.state.running.iter().copied().filter(goes).collect()
    }
}

fn business_key(start: &StartRun) -> Option<(Name, Name)> {
    Some((start.namespace.clone(), start.business_id.clone()?))
}
