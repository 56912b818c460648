//! Housekeeping's part of a turn: what time alone ends.

use kagzi_model::{Aggregate, Millis, Namespace, RunKey, StepState, Timestamp, Worker, act};

use super::{Turn, registry::Leaving};
use crate::{AsideRow, Backend, Leap, StoreError, Swept, frontier::WHOLE};

/// Declares the kinds of housekeeping, each with one that a test could ask for now: what compares stores
/// plays them all.
macro_rules! kinds {
    ($now:ident: $($(#[$about:meta])+ $kind:ident { $($field:ident: $type:ty = $example:expr),* },)+) => {
        /// A kind of housekeeping.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum SweepKind {
            $($(#[$about])+ $kind { $($field: $type),* },)+
        }

        impl SweepKind {
            /// What each is called.
            pub const NAMES: &[&str] = &[$(stringify!($kind)),+];

            /// What it is called.
            pub fn name(&self) -> &'static str {
                match self {
                    $(SweepKind::$kind { .. } => stringify!($kind),)+
                }
            }

            /// One of each kind, as it could be asked for now.
            #[allow(unused_variables, reason = "most kinds ask about a time, and not all")]
            pub fn each($now: Timestamp) -> Vec<SweepKind> {
                vec![$(SweepKind::$kind { $($field: $example),* }),+]
            }
        }
    };
}

kinds! { now:
    /// Leases that ran out and deadlines that passed, by the time at which the sweeper knew that nobody has a
    /// grace. The turn may come much later, before heartbeats that wait behind it. After a leap of the clock,
    /// steps that began before it have so much longer.
    Expired { now: Timestamp = now, leap: Option<Leap> = None },
    /// For the time after a start, when leases have a grace: deadlines that passed, and steps that began
    /// after `since` and ran too long.
    ExpiredDuringGrace { since: Timestamp = now.plus_ms(-5_000) },
    /// Nothing, through the whole write path: proof that it works.
    Probe {},
    /// Workers not heard of since `before`: marked offline, their runs taken back.
    StaleWorkers { before: Timestamp = now.plus_ms(-45_000) },
    /// Schedules that are due: at most so many of them, and so many runs.
    Schedules { schedules_max: usize = 10, runs_max: usize = 20 },
    /// Questions to people about which time has something to do: at most so many.
    Questions { questions_max: usize = 100 },
    /// Workers that went offline before `before`: forgotten.
    OfflineWorkers { before: Timestamp = now.plus_ms(-60_000) },
    /// Runs that are past the retention of their namespace, or past `keep_ms` where it sets none: deleted
    /// with all that belongs to them, a few per round. Without either a run is kept for ever.
    Retention { keep_ms: Option<Millis> = None },
    /// Published events that are on their way to those who wait for them, and events that have expired: some
    /// of each.
    Events {},
}

/// Runs and workers swept in one turn.
const SWEEP_LEN_MAX: usize = 500;

impl<B: Backend> Turn<'_, B> {
    pub(super) async fn sweep(&mut self, kind: SweepKind) -> Result<Swept, StoreError> {
        let losses_max = self.controls.server.worker_losses_max;
        match kind {
            SweepKind::Expired { now, leap } => {
                // Rows of this batch must be visible to the search for expired ones.
                self.flush_before_search().await?;
                let keys = self.sweep_due(self.now.min(now)).await?;
                let full = keys.len() == self.sweep_len();
                let mut count = 0;
                for RunKey { id: run, namespace } in keys {
                    let (now, seen) = (self.now, self.fold.entry(run).map(|entry| &entry.aggregate));
                    if leap.is_some_and(|leap| seen.is_some_and(|seen| only_leapt_over(now, leap, seen))) {
                        continue;
                    }
                    count += 1;
                    // Refused only when the run is gone or cannot be read; then there is nothing to expire.
                    let _ = self.apply(&RunKey::new(namespace, run).duty(act::Expire { losses_max })).await?;
                }
                self.flush_before_search().await?;
                let from = self.sweep_from();
                let next_at = self.backend.next_sweep(from, &self.stats.aside.runs()).await?;
                // What was left alone is found again: only progress is a reason to look at once.
                Ok(Swept { count, more: full && count > 0, next_at })
            }
            SweepKind::ExpiredDuringGrace { since } => {
                self.flush_before_search().await?;
                let keys = self.sweep_due(self.now).await?;
                let mut count = 0;
                for RunKey { id: run, namespace } in keys {
                    let now = self.now;
                    if self.fold.entry(run).is_some_and(|entry| has_no_grace(now, since, &entry.aggregate)) {
                        // Refused only when the run is gone; then there is nothing to expire.
                        let _ =
                            self.apply(&RunKey::new(namespace, run).duty(act::Expire { losses_max })).await?;
                        count += 1;
                    }
                }
                Ok(Swept { count, more: false, next_at: None })
            }
            SweepKind::Schedules { schedules_max, runs_max } => {
                self.sweep_schedules(schedules_max, runs_max).await
            }
            SweepKind::Questions { questions_max } => self.sweep_questions(questions_max).await,
            SweepKind::Probe {} => {
                self.backend.probe().await?;
                Ok(Swept { count: 0, more: false, next_at: None })
            }
            SweepKind::Retention { keep_ms } => self.retire(keep_ms).await,
            SweepKind::Events {} => self.deliver_events().await,
            SweepKind::StaleWorkers { before } => {
                let stale = self.backend.stale_workers(before, SWEEP_LEN_MAX).await?;
                let mut more = stale.len() == SWEEP_LEN_MAX;
                let (mut count, mut runs) = (0, 0);
                if self.shared {
                    // Another server may have heard of them since they were loaded here.
                    stale.iter().for_each(|id| self.worker_cache.evict(*id));
                }
                self.load_all_workers(stale.iter().copied()).await?;
                for id in stale {
                    if runs >= SWEEP_LEN_MAX || self.is_late() {
                        // A rack that is lost at once has a hundred thousand runs: they go on in the next
                        // turns, and heartbeats come in between.
                        more = true;
                        break;
                    }
                    // A heartbeat earlier in this batch keeps it alive.
                    let stale = self.worker_cache.get(id).is_some_and(|known| known.row.is_stale(before));
                    if stale && let Ok(lost) = self.take_offline(id, Leaving::Lost).await? {
                        runs += lost as usize;
                        count += 1;
                    }
                }
                Ok(Swept { count, more, next_at: None })
            }
            SweepKind::OfflineWorkers { before } => {
                // A worker of this batch must be visible as it is now.
                self.flush_before_search().await?;
                let forgotten = self.backend.forget_workers(before, SWEEP_LEN_MAX).await?;
                for worker in &forgotten {
                    self.worker_cache.evict(worker.id);
                    self.remember_handler(worker).await?;
                }
                let count = forgotten.len();
                Ok(Swept { count, more: count == SWEEP_LEN_MAX, next_at: None })
            }
        }
    }

    /// Runs whose lease or deadline passed, loaded.
    async fn sweep_due(&mut self, now: Timestamp) -> Result<Vec<RunKey>, StoreError> {
        let aside = self.stats.aside.runs();
        let (from, began) = (self.sweep_from(), std::time::Instant::now());
        let keys = self.backend.sweep_due(from, now, self.sweep_len(), &aside).await?;
        self.board.sweeps.searched(from, began, began.elapsed());
        if keys.is_empty() {
            self.board.sweeps.advance(now);
        }
        if self.careful {
            self.suspect = keys.first().cloned().map(AsideRow::Run);
        }
        self.load_found(&keys).await?;
        Ok(keys)
    }

    /// Where a search for what passed begins. Alone on a database every entry of an index is alive.
    fn sweep_from(&self) -> Timestamp {
        if self.shared { self.board.sweeps.begins(std::time::Instant::now()) } else { WHOLE }
    }

    /// How many runs one turn sweeps.
    fn sweep_len(&self) -> usize {
        if self.careful { 1 } else { SWEEP_LEN_MAX }
    }

    /// The registry knows where the namespace's failure handler runs. With its last worker that would be
    /// forgotten, so the namespace remembers it.
    async fn remember_handler(&mut self, forgotten: &Worker) -> Result<(), StoreError> {
        let registration = &forgotten.registration;
        if !registration.handles_failures() || self.handler_queue(&registration.namespace).await?.is_some() {
            return Ok(());
        }
        self.controls_in_use(&registration.namespace).await?;
        let known = self.controls.get(&registration.namespace).expect("in use, so known").clone();
        let handler_queue = Some(registration.task_queue.clone());
        self.controls.namespaces.put(Namespace { handler_queue, version: known.version + 1, ..known });
        Ok(())
    }
}

/// Nothing is over but steps that began before a leap of the clock, and that have not run as long as they
/// may.
fn only_leapt_over(now: Timestamp, leap: Leap, seen: &Aggregate) -> bool {
    if seen.run.deadline_at.is_some_and(|at| at <= now) {
        return false;
    }
    let late = |state: &StepState| match state {
        StepState::Running { since, timeout_at, .. } => {
            timeout_at.is_some_and(|at| leap.stretch(*since, at) <= now)
        }
        StepState::Waiting(_) | StepState::Done(_) => false,
    };
    let over = |state: &StepState| match state {
        StepState::Running { timeout_at, .. } => timeout_at.is_some_and(|at| at <= now),
        StepState::Waiting(_) | StepState::Done(_) => false,
    };
    let leased = seen.run.lease().is_some_and(|lease| lease.until > now);
    // Without any such step there is nothing to hold back: the time is only to be armed anew.
    leased
        && seen.steps.values().any(|step| over(&step.state))
        && !seen.steps.values().any(|step| late(&step.state))
}

/// A deadline passed, or a step ran too long of which nothing can have been missed: it began after `since`. A
/// lease that ran out is left alone, because its worker may still be on its way back.
fn has_no_grace(now: Timestamp, since: Timestamp, seen: &Aggregate) -> bool {
    if seen.run.deadline_at.is_some_and(|at| at <= now) {
        return true;
    }
    let late = |state: &StepState| match state {
        StepState::Running { since: began, timeout_at, .. } => {
            *began >= since && timeout_at.is_some_and(|at| at <= now)
        }
        StepState::Waiting(_) | StepState::Done(_) => false,
    };
    let leased = seen.run.lease().is_some_and(|lease| lease.until > now);
    leased && seen.open_steps().any(|step| late(&step.state))
}
