//! The store contract.
//!
//! A back end implements [`Backend`] (load rows, find what is due, write rows, commit) and [`Reads`].
//! Everything that decides or batches is here, once: the [`Lane`] collects commands while a commit is in
//! flight, folds them through `kagzi_model::decide`, gives due runs to workers that stand by, writes,
//! commits, and only then answers.

mod aside;
mod attempts;
mod backend;
mod cache;
mod census;
mod clock;
mod contract;
mod control_cache;
mod controls;
mod demand_board;
mod error;
mod fold;
mod frontier;
mod hash;
mod histogram;
mod history;
mod journal;
mod lane;
mod lane_store;
pub mod listing;
mod memory;
mod reads;
pub mod rows;
mod run_filter;
mod schedules;
mod stats;
mod turn;
mod worker_cache;

pub use aside::{Aside, AsideNote, AsideRow};
pub use attempts::{AttemptState, StepAttempt, attempts};
pub use backend::{
    Backend, DueKey, DueQuery, DueRun, EventRow, FoundBusiness, LabelRow, Loaded, LoadedWorker,
    LoadedWorkers, QueueKey, RetireQuery, WorkersQuery, WriteSet,
};
pub use census::{Census, DueCount, QueueCount, WorkerCount};
pub use clock::{Carried, Clock, Correction, LEAP_MIN, ManualClock, SystemClock, TimeSource};
pub use contract::{
    Assignment, Beat, BeatAnswer, Demand, Finished, Leap, LostLease, Observer, Outcome, RegistryError,
    Silent, Store, SweepKind, Swept, Waiting, WorkerCommand, WorkerReply,
};
pub use controls::{
    ControlBackend, ControlCommand, ControlReads, ControlReply, ControlSet, Depth, ServerControls,
};
pub use error::StoreError;
pub use histogram::{Histogram, HistogramRead};
pub use history::{EventFilter, EventOutline, EventPiece, EventRequest, Reading};
pub use journal::{Journal, JournalEntry, JournalState, journal};
pub use kagzi_model::RunKey;
pub use lane::{Lane, LaneHandle, LaneOptions};
pub use lane_store::LaneStore;
pub use memory::{MemoryReads, MemoryStore};
pub use reads::{
    Cursor, Direction, Listed, Page, PageRequest, Reads, RunView, TOTAL_MAX, Total, Unreadable, WorkerFilter,
    WorkerView,
};
pub use run_filter::{OrderBy, RunFilter, RunOrder, TimeRange};
pub use schedules::{DueSchedule, ScheduleFilter, ScheduleReads, ScheduleReply, ScheduleRows, ScheduleWrite};
pub use stats::LaneStats;
