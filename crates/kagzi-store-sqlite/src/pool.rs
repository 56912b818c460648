//! Readers: a few threads, each with its own connection, fed by one queue.

use std::{
    sync::{Arc, mpsc},
    thread,
};

use kagzi_store::{LaneStats, StoreError};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::db::Db;

/// Reads beyond this wait for their turn in the caller.
const QUEUE_LEN_MAX: usize = 1024;

type Job = Box<dyn FnOnce(&Db) + Send>;

/// A pool of read-only connections. The threads end when the last handle is dropped.
#[derive(Clone)]
pub struct ReadPool {
    jobs: mpsc::SyncSender<Job>,
    stats: Arc<LaneStats>,
}

impl ReadPool {
    /// Starts a thread for each connection. Damage that a read meets is noted in `stats`.
    pub fn over(connections: Vec<Db>, stats: Arc<LaneStats>) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::sync_channel::<Job>(QUEUE_LEN_MAX);
        let queue = Arc::new(Mutex::new(queue));
        for (number, db) in connections.into_iter().enumerate() {
            let queue = queue.clone();
            thread::Builder::new()
                .name(format!("kagzi-read-{number}"))
                .spawn(move || {
                    loop {
                        // The lock is held while waiting, never while reading.
                        let job = queue.lock().recv();
                        match job {
                            Ok(job) => job(&db),
                            Err(mpsc::RecvError) => break,
                        }
                    }
                })
                .map_err(|error| StoreError::Unavailable(format!("could not start a reader: {error}")))?;
        }
        Ok(ReadPool { jobs, stats })
    }

    /// Runs a read on one of the connections.
    pub async fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Db) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.stats.undamaged()?;
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |db| {
            // The caller may have given up; then nobody needs the answer.
            let _ = reply.send(job(db));
        });
        self.jobs.try_send(job).map_err(|error| match error {
            mpsc::TrySendError::Full(_) => StoreError::Unavailable("too many reads at once".into()),
            mpsc::TrySendError::Disconnected(_) => StoreError::Unavailable("the store has stopped".into()),
        })?;
        let answer = answer.await.map_err(|_| StoreError::Unavailable("a reader has stopped".into()))?;
        self.stats.note_damage(answer)
    }
}
