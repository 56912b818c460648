//! Rows that this server leaves alone because it cannot read them: they are damaged, or a newer server wrote
//! them.
//!
//! Only this server, and only until it is restarted: a newer one on the same database may well understand
//! them. They are never claimed, swept or fired here, so that their neighbours do not notice them.
//! `kagzi doctor` names them.

use std::{
    collections::BTreeMap,
    fmt,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use kagzi_model::{Name, RunId, Timestamp, WorkerId, schedule::ScheduleKey};
use parking_lot::RwLock;
use uuid::Uuid;

use crate::RunKey;

/// Most rows that are remembered. When there are more, all are forgotten and found again.
const ROWS_MAX: usize = 10_000;

/// A row that was set aside.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum AsideRow {
    Run(RunKey),
    /// A schedule, and the key that its index has.
    Schedule(ScheduleKey, Uuid),
    Worker(WorkerId),
    /// The settings of a namespace.
    Namespace(Name),
}

impl AsideRow {
    /// Which kind of row it is, in one word.
    pub fn kind(&self) -> &'static str {
        match self {
            AsideRow::Run(_) => "run",
            AsideRow::Schedule(..) => "schedule",
            AsideRow::Worker(_) => "worker",
            AsideRow::Namespace(_) => "namespace",
        }
    }

    /// Every kind, for the metric.
    pub const KINDS: [&str; 4] = ["run", "schedule", "worker", "namespace"];
}

impl fmt::Display for AsideRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AsideRow::Run(RunKey { id: run, namespace }) => write!(f, "run {run} of namespace '{namespace}'"),
            AsideRow::Schedule(key, _) => write!(f, "schedule '{}' of namespace '{}'", key.id, key.namespace),
            AsideRow::Worker(id) => write!(f, "worker {id}"),
            AsideRow::Namespace(name) => write!(f, "the settings of namespace '{name}'"),
        }
    }
}

/// Why a row was set aside, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsideNote {
    pub why: String,
    pub since: Timestamp,
}

/// All rows that were set aside. Written by the lane, read by whoever wants to know.
#[derive(Debug, Default)]
pub struct Aside {
    rows: RwLock<BTreeMap<AsideRow, AsideNote>>,
    /// How many there are: nearly always none, and then nothing is locked.
    len: AtomicUsize,
}

impl Aside {
    pub fn is_empty(&self) -> bool {
        self.len.load(Relaxed) == 0
    }

    pub fn len(&self) -> usize {
        self.len.load(Relaxed)
    }

    /// Sets a row aside.
    pub fn put(&self, row: AsideRow, why: &str, now: Timestamp) {
        let mut rows = self.rows.write();
        if rows.contains_key(&row) {
            return;
        }
        tracing::error!(%row, why, "a row cannot be read and is left alone");
        if rows.len() >= ROWS_MAX {
            rows.clear();
        }
        rows.insert(row, AsideNote { why: why.to_owned(), since: now });
        self.len.store(rows.len(), Relaxed);
    }

    /// The row could be read after all.
    pub fn take_back(&self, row: &AsideRow) {
        if self.is_empty() {
            return;
        }
        let mut rows = self.rows.write();
        if rows.remove(row).is_some() {
            tracing::info!(%row, "a row that was left alone can be read again");
        }
        self.len.store(rows.len(), Relaxed);
    }

    /// Why a run was set aside, if it was.
    pub fn why(&self, key: &RunKey) -> Option<AsideNote> {
        if self.is_empty() {
            return None;
        }
        self.rows.read().get(&AsideRow::Run(key.clone())).cloned()
    }

    /// Whether a row was set aside.
    pub fn contains(&self, row: &AsideRow) -> bool {
        !self.is_empty() && self.rows.read().contains_key(row)
    }

    /// The runs, for searches to pass over.
    pub fn runs(&self) -> Vec<RunId> {
        self.pick(|row| match row {
            AsideRow::Run(key) => Some(key.id),
            AsideRow::Schedule(..) | AsideRow::Worker(_) | AsideRow::Namespace(_) => None,
        })
    }

    /// The schedules, for searches to pass over.
    pub fn schedules(&self) -> Vec<Uuid> {
        self.pick(|row| match row {
            AsideRow::Schedule(_, uid) => Some(*uid),
            AsideRow::Run(_) | AsideRow::Worker(_) | AsideRow::Namespace(_) => None,
        })
    }

    fn pick<T>(&self, pick: impl Fn(&AsideRow) -> Option<T>) -> Vec<T> {
        if self.is_empty() {
            return Vec::new();
        }
        self.rows.read().keys().filter_map(pick).collect()
    }

    /// Everything, for people.
    pub fn list(&self, limit: usize) -> Vec<(AsideRow, AsideNote)> {
        self.rows.read().iter().take(limit).map(|(row, note)| (row.clone(), note.clone())).collect()
    }

    /// How many there are of a kind.
    pub fn count(&self, kind: &str) -> usize {
        self.rows.read().keys().filter(|row| row.kind() == kind).count()
    }
}
