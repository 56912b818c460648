//! Readers: a few threads, each with its own connection. One of them serves nobody but workers that wait for
//! the history of their run, so that a dashboard cannot hold up a dispatch.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use kagzi_store::{LaneStats, StoreError};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};

use crate::{db::Db, sqlite};

/// Reads beyond this wait for their turn in the caller.
const QUEUE_LEN_MAX: usize = 1024;
/// A read that takes longer is ended, as on PostgreSQL: a thread that reads for minutes is one that everybody
/// misses.
pub const READ_MAX: Duration = Duration::from_secs(10);
/// How many steps of SQLite's machine lie between two looks at the time: about a tenth of a millisecond.
const LOOK_EVERY: std::ffi::c_int = 10_000;

type Job = Box<dyn FnOnce(&Db) + Send>;

/// Read-only connections. The threads end when the last handle is dropped.
#[derive(Clone)]
pub struct ReadPool {
    /// For whoever looks.
    looking: Queue,
    /// For workers that wait to begin.
    dispatch: Queue,
    stats: Arc<LaneStats>,
}

/// The connections of a pool.
pub struct Connections {
    pub looking: Vec<Db>,
    pub dispatch: Vec<Db>,
}

impl ReadPool {
    /// Starts a thread for each connection. Damage that a read meets is noted in `stats`.
    pub fn over(connections: Connections, stats: Arc<LaneStats>) -> Result<Self, StoreError> {
        let looking = Queue::over(connections.looking, "kagzi-read", Some(READ_MAX))?;
        // What a run has recorded must be read whole, however long it takes.
        let dispatch = Queue::over(connections.dispatch, "kagzi-dispatch", None)?;
        Ok(ReadPool { looking, dispatch, stats })
    }

    /// Runs a read on one of the connections.
    pub async fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Db) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.stats.undamaged()?;
        self.stats.note_damage(self.looking.read(job).await)
    }

    /// The same, ahead of everybody who only looks.
    pub async fn read_for_dispatch<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Db) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.stats.undamaged()?;
        self.stats.note_damage(self.dispatch.read(job).await)
    }
}

/// Threads that share one queue.
#[derive(Clone)]
struct Queue {
    jobs: mpsc::Sender<Job>,
    places: Arc<Semaphore>,
}

impl Queue {
    fn over(connections: Vec<Db>, name: &str, time_max: Option<Duration>) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        for (number, mut db) in connections.into_iter().enumerate() {
            let queue = queue.clone();
            let until: Arc<Mutex<Option<Instant>>> = Arc::default();
            if time_max.is_some() {
                let until = until.clone();
                let late = move || until.lock().is_some_and(|until| Instant::now() > until);
                sqlite::interrupt_when(&mut db, LOOK_EVERY, late)?;
            }
            thread::Builder::new()
                .name(format!("{name}-{number}"))
                .spawn(move || {
                    loop {
                        // The lock is held while waiting, never while reading.
                        let job = queue.lock().recv();
                        match job {
                            Ok(job) => {
                                *until.lock() = time_max.map(|max| Instant::now() + max);
                                job(&db);
                            }
                            Err(mpsc::RecvError) => break,
                        }
                    }
                })
                .map_err(|error| StoreError::Unavailable(format!("could not start a reader: {error}")))?;
        }
        Ok(Queue { jobs, places: Arc::new(Semaphore::new(QUEUE_LEN_MAX)) })
    }

    async fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Db) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let stopped = || StoreError::Unavailable("the store has stopped".into());
        let _place = self.places.acquire().await.map_err(|_| stopped())?;
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |db| {
            // The caller may have given up; then nobody needs the answer, and nothing is read for it.
            if !reply.is_closed() {
                let _ = reply.send(job(db));
            }
        });
        self.jobs.send(job).map_err(|_| stopped())?;
        answer.await.map_err(|_| StoreError::Unavailable("a reader has stopped".into()))?
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    /// A count that takes for ever.
    const ENDLESS: &str =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n WHERE i < 0";

    fn connections(looking: usize, dispatch: usize) -> Connections {
        let open = |_| Db::Sqlite(rusqlite::Connection::open_in_memory().expect("memory can be opened"));
        Connections { looking: (0..looking).map(open).collect(), dispatch: (0..dispatch).map(open).collect() }
    }

    #[tokio::test]
    async fn more_reads_than_fit_into_the_queue_wait_and_none_is_refused() {
        let pool = ReadPool::over(connections(1, 0), Arc::default()).unwrap();
        let done = Arc::new(AtomicUsize::new(0));

        let reads = (0..QUEUE_LEN_MAX * 2).map(|_| {
            let (pool, done) = (pool.clone(), done.clone());
            async move { pool.read(move |_| Ok(done.fetch_add(1, SeqCst))).await }
        });
        let answers = reads.collect::<tokio::task::JoinSet<_>>().join_all().await;

        assert!(answers.iter().all(Result::is_ok));
        assert_eq!(done.load(SeqCst), QUEUE_LEN_MAX * 2);
    }

    #[tokio::test]
    async fn a_worker_does_not_wait_for_whoever_looks() {
        let pool = ReadPool::over(connections(1, 1), Arc::default()).unwrap();
        let (go_on, wait) = mpsc::channel::<u8>();
        let looking = pool.clone();
        let looking = tokio::spawn(async move {
            looking.read(move |_| Ok(wait.recv().expect("the test lets it go on"))).await
        });

        let served = pool.read_for_dispatch(|_| Ok(7)).await;

        assert_eq!(served, Ok(7));
        go_on.send(1).unwrap();
        assert_eq!(looking.await.unwrap(), Ok(1));
    }

    #[tokio::test]
    async fn a_read_that_takes_too_long_is_ended_and_the_next_one_is_served() {
        let short = Some(Duration::from_millis(50));
        let queue = Queue::over(connections(1, 0).looking, "test", short).unwrap();

        let ended = queue.read(|db| db.first(ENDLESS, &[], |row| row.get::<i64>(0))).await;
        let served = queue.read(|db| db.first("SELECT 1", &[], |row| row.get::<i64>(0))).await;

        assert!(matches!(ended, Err(StoreError::Unavailable(_))), "{ended:?}");
        assert_eq!(served, Ok(Some(1)));
    }
}
