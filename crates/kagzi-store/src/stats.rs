//! Counters of the write path: how many commands share a commit is where the speed comes from.

use std::sync::{
    OnceLock,
    atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
};

use kagzi_model::Timestamp;

use crate::{Aside, Histogram, StoreError};

/// Totals since the start.
#[derive(Debug)]
pub struct LaneStats {
    pub commits: AtomicU64,
    pub commands: AtomicU64,
    pub refused: AtomicU64,
    pub refused_stale: AtomicU64,
    /// Signals that were kept or ended a wait, that had come before, and that were refused: because the run
    /// has too many that it has not taken, and because it or their channel takes none any more.
    pub signals_told: AtomicU64,
    pub signals_repeated: AtomicU64,
    pub signals_full: AtomicU64,
    pub signals_refused: AtomicU64,
    /// Events that were published, that had been published before, and that were refused.
    pub events_published: AtomicU64,
    pub events_repeated: AtomicU64,
    pub events_refused: AtomicU64,
    /// How often a run was told of one, and how many have expired.
    pub events_delivered: AtomicU64,
    pub events_expired: AtomicU64,
    /// Runs that triggers started.
    pub trigger_starts: AtomicU64,
    pub events: AtomicU64,
    pub leases: AtomicU64,
    pub leases_lost: AtomicU64,
    pub commit_micros: AtomicU64,
    pub commit_errors: AtomicU64,
    pub conflicts: AtomicU64,
    /// Attempts that failed and are retried.
    pub step_retries: AtomicU64,
    /// Executions of whole runs that failed and are retried.
    pub run_retries: AtomicU64,
    /// From `begin` to the commit's return, of batches that wrote.
    pub commit_time: Histogram,
    /// Commands per batch that wrote.
    pub batch_len: Histogram,
    /// From ready to leased.
    pub schedule_to_start: Histogram,
    /// From the time that a sleep or retry was due to the lease.
    pub timer_lag: Histogram,
    /// Runs that retention deleted, and rows of their events.
    pub runs_retired: AtomicU64,
    pub events_retired: AtomicU64,
    /// Commits that deleted any of them.
    pub retention_batches: AtomicU64,
    /// Runs that schedules started.
    pub schedule_fires: AtomicU64,
    /// Times that schedules left out because an earlier run was still going.
    pub schedule_overlapped: AtomicU64,
    /// Times that schedules left out because more were missed than they make up for.
    pub schedule_missed: AtomicU64,
    /// Times that had to wait for the run before them.
    pub schedule_buffered: AtomicU64,
    /// From the time that a schedule's run was due to its start.
    pub schedule_lateness: Histogram,
    /// Runs that were loaded because memory did not have them, and the lines of their histories.
    pub runs_loaded: AtomicU64,
    pub events_loaded: AtomicU64,
    /// Events that were read to hand runs over to workers.
    pub replay_events: AtomicU64,
    /// How often the lane has waited for an answer of the database.
    pub round_trips: AtomicU64,
    /// Messages that waited when the newest batch was collected.
    pub queue_len: AtomicU64,
    /// Namespaces that were made because somebody named them.
    pub namespaces_made: AtomicU64,
    /// Batches that were taken apart because something in them could not be stored.
    pub taken_apart: AtomicU64,
    /// Rows that are left alone because they cannot be read.
    pub aside: Aside,
    /// When the newest batch failed; 0 = it did not.
    failed_at: AtomicI64,
    /// What is damaged, once it was seen.
    damage: OnceLock<String>,
}

impl Default for LaneStats {
    fn default() -> Self {
        LaneStats {
            commits: AtomicU64::default(),
            commands: AtomicU64::default(),
            refused: AtomicU64::default(),
            refused_stale: AtomicU64::default(),
            signals_told: AtomicU64::default(),
            signals_repeated: AtomicU64::default(),
            signals_full: AtomicU64::default(),
            signals_refused: AtomicU64::default(),
            events_published: AtomicU64::default(),
            events_repeated: AtomicU64::default(),
            events_refused: AtomicU64::default(),
            events_delivered: AtomicU64::default(),
            events_expired: AtomicU64::default(),
            trigger_starts: AtomicU64::default(),
            events: AtomicU64::default(),
            leases: AtomicU64::default(),
            leases_lost: AtomicU64::default(),
            commit_micros: AtomicU64::default(),
            commit_errors: AtomicU64::default(),
            conflicts: AtomicU64::default(),
            runs_retired: AtomicU64::default(),
            events_retired: AtomicU64::default(),
            retention_batches: AtomicU64::default(),
            schedule_fires: AtomicU64::default(),
            schedule_overlapped: AtomicU64::default(),
            schedule_missed: AtomicU64::default(),
            schedule_buffered: AtomicU64::default(),
            schedule_lateness: Histogram::of_durations(),
            step_retries: AtomicU64::default(),
            run_retries: AtomicU64::default(),
            commit_time: Histogram::of_durations(),
            batch_len: Histogram::of_counts(),
            schedule_to_start: Histogram::of_durations(),
            timer_lag: Histogram::of_durations(),
            runs_loaded: AtomicU64::default(),
            events_loaded: AtomicU64::default(),
            replay_events: AtomicU64::default(),
            round_trips: AtomicU64::default(),
            queue_len: AtomicU64::default(),
            namespaces_made: AtomicU64::new(0),
            taken_apart: AtomicU64::default(),
            aside: Aside::default(),
            failed_at: AtomicI64::default(),
            damage: OnceLock::new(),
        }
    }
}

impl LaneStats {
    /// Adds to a counter.
    pub fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Relaxed);
    }

    /// Reads a counter.
    pub fn get(counter: &AtomicU64) -> u64 {
        counter.load(Relaxed)
    }

    /// A batch was not committed.
    pub fn failed(&self, now: Timestamp) {
        LaneStats::add(&self.commit_errors, 1);
        self.failed_at.store(now.0.max(1), Relaxed);
    }

    /// A batch that wrote something was committed.
    pub fn committed(&self, commands: u64, micros: u64) {
        LaneStats::add(&self.commits, 1);
        LaneStats::add(&self.commit_micros, micros);
        self.commit_time.observe(micros);
        self.batch_len.observe(commands);
        self.failed_at.store(0, Relaxed);
    }

    /// The database was found damaged. From here on nothing is read and nothing is written: an answer may be
    /// made of what is left, and each write may make it worse.
    pub fn damaged(&self, why: &str) {
        let mut first = false;
        let said = self.damage.get_or_init(|| {
            first = true;
            why.to_owned()
        });
        if first {
            tracing::error!(damage = %said, "the database is damaged, no more work is taken");
        }
    }

    /// What is damaged, if anything is known to be.
    pub fn damage(&self) -> Option<&str> {
        self.damage.get().map(String::as_str)
    }

    /// Refuses to go on with a damaged database.
    pub fn undamaged(&self) -> Result<(), StoreError> {
        self.damage().map_or(Ok(()), |why| Err(StoreError::Damaged(why.to_owned())))
    }

    /// Remembers the damage that an answer tells of.
    pub fn note_damage<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(StoreError::Damaged(why)) = &answer {
            self.damaged(why);
        }
        answer
    }

    /// When the newest batch that wanted to write failed, if it did.
    pub fn failed_at(&self) -> Option<Timestamp> {
        Some(self.failed_at.load(Relaxed)).filter(|at| *at > 0).map(Timestamp)
    }
}
