//! What every history must keep, event by event: one pass over all rows, a run at a time.

use std::{collections::HashSet, ops::Range};

use kagzi_model::{Audit, Event, EventKind, Name, RunId, State};
use kagzi_store::{StoreError, rows, rows::StoredRow};

use super::Complaint;
use crate::{db::Db, events};

const ENDS: &str = "I1 an ended run has one end since it was last reopened, and a living run has none";
const ENDED_AS: &str = "I1 a run ended as its history says";
const RESULTS: &str = "I2 a step has at most one recorded result";
const NUMBERS: &str = "I11 events are numbered without a gap";
const GENERATION: &str = "I11 a run's living generation begins where its row says";
const CARRIED: &str = "I14 a signal that a generation took along is there";
const READABLE: &str = "I11 every event can be read";

const STATUS: &str = "SELECT status, coalesce(first_seq, 1), state FROM runs WHERE run_id = ?1";

/// One run's history, as far as it was read.
struct History {
    run: RunId,
    last_seq: u64,
    /// Numbers without a gap. What lies before the living generation may have several.
    stretches: Vec<Range<u64>>,
    /// Where the last generation begins that is told of, and the events with the signals that it took along.
    begins: u64,
    carried: Vec<u64>,
    /// Since it was last reopened.
    ends: u64,
    /// As the status of the run that it ends.
    ended_as: Option<i64>,
    results: HashSet<Name>,
    /// Signals, waits and children.
    audit: Audit,
    /// A newer version wrote something, and what it means for the others is not known here.
    newer: bool,
    broken: HashSet<&'static str>,
}

/// What is broken in the histories of the runs that are there. Those that retention is deleting have no row
/// any more.
pub fn complaints(db: &Db) -> Result<Vec<Complaint>, StoreError> {
    let mut found: Vec<Complaint> = Vec::new();
    let mut current: Option<History> = None;
    events::each_row(db, |run, row| {
        if current.as_ref().is_none_or(|history| history.run != run)
            && let Some(ended) = current.replace(History::of(run))
        {
            ended.judge(db, &mut found)?;
        }
        let history = current.get_or_insert_with(|| History::of(run));
        history.read(row);
        Ok(())
    })?;
    if let Some(last) = current {
        last.judge(db, &mut found)?;
    }
    Ok(found)
}

impl History {
    fn of(run: RunId) -> Self {
        History {
            run,
            last_seq: 0,
            stretches: Vec::new(),
            begins: 1,
            carried: Vec::new(),
            ends: 0,
            ended_as: None,
            results: HashSet::new(),
            audit: Audit::default(),
            newer: false,
            broken: HashSet::new(),
        }
    }

    fn read(&mut self, row: &StoredRow<'_>) {
        let events = row.first_seq..row.first_seq + row.kinds.len() as u64;
        match self.stretches.last_mut() {
            Some(last) if rows::follows(last.end.saturating_sub(1), row.first_seq).is_ok() => {
                last.end = events.end;
            }
            Some(_) | None => self.stretches.push(events),
        }
        self.last_seq = row.first_seq.saturating_sub(1);
        for line in row.lines() {
            let Ok(line) = line else {
                self.broken.insert(READABLE);
                continue;
            };
            self.see(&line.event);
        }
    }

    fn see(&mut self, event: &Event) {
        self.last_seq = event.seq;
        self.audit.see(event);
        match &event.kind {
            EventKind::StepCompleted { step, .. } if !self.results.insert(step.clone()) => {
                self.broken.insert(RESULTS);
            }
            EventKind::RunReopened { .. } => self.ends = 0,
            EventKind::RunContinued { unread, .. } => {
                self.begins = event.seq;
                self.carried = unread.iter().map(|signal| signal.received).collect();
                self.results.clear();
            }
            // A newer version wrote it. One that has a number of ours is damaged.
            EventKind::Unknown { number, .. }
                if EventKind::KINDS.iter().any(|kind| kind.number == *number) =>
            {
                self.broken.insert(READABLE);
            }
            EventKind::Unknown { .. } => self.newer = true,
            kind => {
                if let Some(status) = kind.ends_as() {
                    self.ends += 1;
                    self.ended_as = Some(status as i64);
                }
            }
        }
    }

    fn judge_generation(&mut self, first_seq: u64) {
        if self.stretches.last().is_none_or(|last| !last.contains(&first_seq)) {
            self.broken.insert(NUMBERS);
        }
        if self.begins != first_seq {
            self.broken.insert(GENERATION);
        }
        let is_there = |seq: &u64| self.stretches.iter().any(|stretch| stretch.contains(seq));
        if !self.carried.iter().all(is_there) {
            self.broken.insert(CARRIED);
        }
    }

    fn judge(mut self, db: &Db, found: &mut Vec<Complaint>) -> Result<(), StoreError> {
        let row = db.first(STATUS, crate::value::bind![self.run], |row| {
            Ok((row.get::<i64>(0)?, row.get::<u64>(1)?, row.get::<String>(2)?))
        })?;
        let Some((status, first_seq, state)) = row else { return Ok(()) };
        self.judge_generation(first_seq);
        let ended = (4..=7).contains(&status);
        // What cannot be read may have been an end.
        if self.broken.is_empty() {
            if self.ends != u64::from(ended) {
                self.broken.insert(ENDS);
            } else if ended && self.ended_as != Some(status) {
                self.broken.insert(ENDED_AS);
            }
            // A state that only a newer version knows is not judged.
            if let Ok(state) = serde_json::from_str::<State>(&state)
                && !self.newer
            {
                self.broken.extend(self.audit.complaints(&state));
            }
        }
        for promise in self.broken {
            match found.iter_mut().find(|complaint| complaint.promise == promise) {
                Some(complaint) => complaint.count += 1,
                None => {
                    let example = format!("run {}", self.run);
                    found.push(Complaint { promise, count: 1, example });
                }
            }
        }
        Ok(())
    }
}
