//! The store contract.
//!
//! A back end implements [`Backend`] (load rows, find what is due, write rows, commit) and [`Reads`].
//! Everything that decides or batches is here, once: the [`Lane`] collects commands while a commit is in
//! flight, folds them through `kagzi_model::decide`, gives due runs to workers that stand by, writes,
//! commits, and only then answers.

mod aside;
mod backend;
mod cache;
mod census;
mod clock;
mod columns;
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
mod interventions;
mod lane;
pub mod listing;
mod memory;
mod nouns;
mod reads;
pub mod rows;
mod run_filter;
mod schedules;
mod statements;
mod stats;
mod store;
mod table;
mod topics;
mod turn;
mod worker_cache;

pub use aside::{Aside, AsideNote, AsideRow};
pub use backend::{
    Backend, Changes, Continued, ControlRows, DueKey, DueQuery, DueQuestion, DueRun, DueSchedule, EventRow,
    FoundBusiness, InterventionRows, LabelRow, Loaded, LoadedWorker, LoadedWorkers, NounRows, OLD_ROWS_MAX,
    PeopleSet, QueueKey, RetentionRows, RetireQuery, RunRows, ScheduleRows, SubscriptionRow, TopicRows,
    WorkerRows, WorkersQuery, WriteSet,
};
pub use census::{Census, DueCount, QueueCount, WaitCount, WorkerCount};
pub use clock::{Carried, Clock, Correction, LEAP_MIN, ManualClock, SystemClock, TimeSource};
pub use contract::{
    Assignment, Beat, BeatAnswer, CutOff, Demand, Deregister, Drain, Finished, Leap, LostLease, Observer,
    Offline, Outcome, Register, SignalNotice, Silent, Swept, Waiting,
};
pub use controls::{ChangeGate, ChangeNamespace, ControlReads, Depth, ListedNamespace, ServerControls};
pub use error::StoreError;
pub use histogram::{Histogram, HistogramRead};
pub use history::{EventFilter, EventOutline, EventPiece, EventRequest, Reading};
pub use interventions::{
    ANYBODY, InterventionFilter, InterventionReads, InterventionReply, SettleNotice, TakeNotices, asked,
};
pub use kagzi_model::{RegistryError, RunKey};
pub use lane::{Ask, Lane, LaneHandle, LaneOptions, Message, Request};
pub use memory::{MemoryReads, MemoryStore};
pub use nouns::{ChangeNoun, NounReads};
pub use reads::{
    Cursor, Direction, Listed, Page, PageRequest, Reads, RunView, TOTAL_MAX, Total, Unreadable, WorkerFilter,
    WorkerView,
};
pub use run_filter::{OrderBy, RunFilter, RunOrder, TimeRange};
pub use schedules::{ScheduleFilter, ScheduleReads, ScheduleReply};
pub use statements::StatementEntry;
pub use stats::LaneStats;
pub use store::Store;
pub use topics::{EventPlace, ListedEvent, Room, TopicReads};
pub use turn::SweepKind;
