//! Reading, for people and for replay. Reads never block the write path.

use async_trait::async_trait;
use kagzi_model::{Event, Name, Payload, Run, RunId, Timestamp, Worker, WorkerId, WorkerStatus};

use crate::{
    Census, ControlReads, EventOutline, EventPiece, EventRequest, InterventionReads, NounReads, RunFilter,
    ScheduleReads, StoreError, TopicReads, WaitCount,
};

/// Totals are counted up to here: nobody reads further, and counting a million rows helps nobody.
pub const TOTAL_MAX: u64 = 10_000;

/// What can be read of a store. Everything is scoped to one namespace.
#[async_trait]
pub trait Reads: ControlReads + NounReads + ScheduleReads + TopicReads + InterventionReads {
    /// One run with its payloads.
    async fn run(&self, namespace: &Name, id: RunId) -> Result<Option<RunView>, StoreError>;
    /// Those of these runs that are there and have not ended, in any order: for whoever waits for an end,
    /// without a payload and in one statement.
    async fn living(&self, runs: &[(Name, RunId)]) -> Result<Vec<RunId>, StoreError>;
    /// Whether another server may be there that writes to the same database and whose hints may get lost.
    /// Alone, nobody has to look whether somebody else ended a run.
    fn has_peers(&self) -> bool {
        true
    }
    /// The run that has a business id.
    async fn run_by_business(
        &self,
        namespace: &Name,
        business_id: &Name,
    ) -> Result<Option<RunId>, StoreError>;
    /// Up to two runs whose id begins with the hexadecimal digits: one is an answer, two are a question.
    async fn runs_by_prefix(&self, namespace: &Name, digits: &str) -> Result<Vec<RunId>, StoreError>;
    /// Runs that match, in the filter's order.
    async fn runs(
        &self,
        namespace: &Name,
        filter: &RunFilter,
        page: &PageRequest,
    ) -> Result<Page<Run>, StoreError>;
    /// How many runs match, counted no further than [`TOTAL_MAX`].
    async fn count_runs(&self, namespace: &Name, filter: &RunFilter) -> Result<Total, StoreError>;
    /// Events of a run after a sequence number, oldest first.
    async fn events(
        &self,
        namespace: &Name,
        run: RunId,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError>;
    /// A piece of a run's history, bounded in events and in bytes; nothing when the run is not there.
    async fn history(
        &self,
        namespace: &Name,
        run: RunId,
        request: &EventRequest,
    ) -> Result<EventPiece, StoreError>;
    /// The same for a worker that waits for it to begin, ahead of everybody who only looks.
    async fn replay(
        &self,
        namespace: &Name,
        run: RunId,
        request: &EventRequest,
    ) -> Result<EventPiece, StoreError> {
        self.history(namespace, run, request).await
    }
    /// Events of a run after a sequence number, oldest first, without their payloads.
    async fn outline(
        &self,
        namespace: &Name,
        run: RunId,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<EventOutline>, StoreError>;
    /// The payloads of these events of a run, by sequence number; those that have none are left out.
    async fn payloads(
        &self,
        namespace: &Name,
        run: RunId,
        seqs: &[u64],
    ) -> Result<Vec<(u64, Payload)>, StoreError>;
    /// One worker with its leases counted.
    async fn worker_by_id(&self, namespace: &Name, id: WorkerId) -> Result<Option<WorkerView>, StoreError>;
    /// Up to two workers whose id begins with the hexadecimal digits.
    async fn workers_by_prefix(&self, namespace: &Name, digits: &str) -> Result<Vec<WorkerId>, StoreError>;
    /// Workers, newest first, and how many match in all, counted no further than [`TOTAL_MAX`].
    async fn workers(
        &self,
        namespace: &Name,
        filter: &WorkerFilter,
        page: &PageRequest,
    ) -> Result<(Page<WorkerView>, Total), StoreError>;
    /// A count over all namespaces, for metrics.
    async fn census(&self, now: Timestamp) -> Result<Census, StoreError>;
    /// Runs that sleep or wait for somebody, over all namespaces, by what they wait for: for metrics. It
    /// reads a row for each of them, so whoever asks often asks too often.
    async fn waits(&self) -> Result<Vec<WaitCount>, StoreError>;
    /// For how many seconds the oldest transaction of the database has been open, where somebody else could
    /// hold one: while it is, rows that have moved on stay in the way of every search.
    async fn oldest_transaction(&self) -> Result<Option<f64>, StoreError> {
        Ok(None)
    }
    /// Whether reading works at all.
    async fn ping(&self) -> Result<(), StoreError>;
}

/// A run with its payloads.
#[derive(Debug, Clone, PartialEq)]
pub struct RunView {
    pub run: Run,
    pub input: Option<Payload>,
    pub output: Option<Payload>,
}

/// Which workers to list; unset fields match all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerFilter {
    pub status: Option<WorkerStatus>,
    pub task_queue: Option<Name>,
}

/// A worker and the number of leases it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerView {
    pub worker: Worker,
    pub active: u32,
}

/// A place between two rows: full precision, so that nothing is skipped or seen twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    pub at: Timestamp,
    pub id: uuid::Uuid,
}

/// Which way a page goes from its cursor. The order of rows is the same both ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Rows behind the cursor in the listing's order: older ones, when the newest come first.
    Next,
    /// Rows before it.
    Prev,
}

/// How many rows match, or that it is more than [`TOTAL_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Total {
    pub count: u64,
    /// There are more than were counted: "10,000+".
    pub capped: bool,
}

impl Total {
    /// From a count that stopped one beyond the maximum.
    pub fn of(counted: u64) -> Self {
        Total { count: counted.min(TOTAL_MAX), capped: counted > TOTAL_MAX }
    }
}

/// One page, please.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    pub from: Option<Cursor>,
    pub direction: Direction,
    pub limit: usize,
}

/// Rows in the order of the listing, and whether there are more on either side.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    pub rows: Vec<T>,
    pub has_next: bool,
    pub has_prev: bool,
    /// Rows that belong here, cannot be read and were left out: damaged ones, and those of a newer server.
    pub unreadable: Unreadable,
}

/// Rows that a page leaves out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unreadable {
    pub count: usize,
    /// The places of the first and the last of them on a page that has no other row: it goes on from there.
    pub alone: Option<(Cursor, Cursor)>,
}

/// A row as a listing finds it.
#[derive(Debug, Clone, PartialEq)]
pub enum Listed<T> {
    Row(T),
    /// It cannot be read, but its place in the order can.
    Unreadable(Cursor),
}

impl<T> Listed<T> {
    /// What was read; only what is wrong with the row itself is passed over.
    pub fn of(
        read: Result<T, StoreError>,
        place: impl FnOnce() -> Result<Cursor, StoreError>,
    ) -> Result<Listed<T>, StoreError> {
        match read {
            Ok(row) => Ok(Listed::Row(row)),
            Err(StoreError::Corrupt(_)) => place().map(Listed::Unreadable),
            Err(error) => Err(error),
        }
    }

    fn is_readable(&self) -> bool {
        matches!(self, Listed::Row(_))
    }
}

impl<T> Page<T> {
    /// A page without rows.
    pub fn empty() -> Self {
        Page { rows: Vec::new(), has_next: false, has_prev: false, unreadable: Unreadable::default() }
    }

    /// Builds a page from up to `limit + 1` rows in reading direction, and whether the other side has any.
    pub fn from_probe(mut found: Vec<Listed<T>>, request: &PageRequest, other_side: bool) -> Self {
        let more = found.len() > request.limit;
        found.truncate(request.limit);
        // The next page begins behind the last row that can be read and counts those that follow it.
        if more && let Some(last) = found.iter().rposition(Listed::is_readable) {
            found.truncate(last + 1);
        }
        let (has_next, has_prev) = match request.direction {
            Direction::Next => (more, other_side),
            Direction::Prev => {
                found.reverse();
                (other_side, more)
            }
        };
        let mut page = Page { has_next, has_prev, ..Page::empty() };
        let mut places = Vec::new();
        for listed in found {
            match listed {
                Listed::Row(row) => page.rows.push(row),
                Listed::Unreadable(place) => places.push(place),
            }
        }
        page.unreadable.count = places.len();
        if page.rows.is_empty() {
            page.unreadable.alone = places.first().copied().zip(places.last().copied());
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(at: i64) -> Cursor {
        Cursor { at: Timestamp(at), id: uuid::Uuid::nil() }
    }

    /// Rows 1 to 4 of which some cannot be read, in pages of two.
    fn page(unreadable: &[i64], from: i64, direction: Direction) -> Page<i64> {
        let listed = |at| match unreadable.contains(&at) {
            true => Listed::Unreadable(cursor(at)),
            false => Listed::Row(at),
        };
        let found: Vec<_> = match direction {
            Direction::Next => (from..=4).take(3).map(listed).collect(),
            Direction::Prev => (1..=from).rev().take(3).map(listed).collect(),
        };
        Page::from_probe(found, &PageRequest { from: None, direction, limit: 2 }, false)
    }

    #[test]
    fn rows_that_cannot_be_read_are_left_out_and_counted_on_one_page_only() {
        let first = page(&[2], 1, Direction::Next);
        assert_eq!((&first.rows[..], first.unreadable.count, first.has_next), (&[1][..], 0, true));
        let second = page(&[2], 2, Direction::Next);
        assert_eq!((&second.rows[..], second.unreadable.count, second.has_next), (&[3][..], 1, true));
        let last = page(&[4], 3, Direction::Next);
        assert_eq!((&last.rows[..], last.unreadable.count, last.has_next), (&[3][..], 1, false));
        let back = page(&[3], 4, Direction::Prev);
        assert_eq!((&back.rows[..], back.unreadable.count, back.has_prev), (&[4][..], 0, true));
    }

    #[test]
    fn a_page_on_which_nothing_can_be_read_knows_where_it_goes_on() {
        let page = page(&[1, 2], 1, Direction::Next);

        assert_eq!((page.rows.len(), page.unreadable.count, page.has_next), (0, 2, true));
        assert_eq!(page.unreadable.alone, Some((cursor(1), cursor(2))));
    }
}
