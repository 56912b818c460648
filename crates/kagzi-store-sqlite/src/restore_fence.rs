//! After a restore every lease that was given out before it must be refused: the epochs of all runs are
//! raised.

use std::{path::Path, sync::Arc};

use kagzi_model::{LeaseRef, WorkerId, act};
use kagzi_store::{Clock, Deregister, Lane, LaneOptions, Silent, Store, StoreError, SystemClock};

use crate::{
    backend::SqliteBackend,
    file_lock::FileLock,
    identity,
    migrate::migrate,
    pool::{Connections, ReadPool},
    reads::SqliteReads,
    sound::Check,
    sqlite,
    value::bind,
};

/// What the histories of the runs say.
const WHY: &str = "the database was restored from a backup";
/// Runs given back in one commit.
const CHUNK: usize = 500;

// Beyond every epoch that was given out since the backup, in this life of the database or in one that an
// earlier restore began: each lease raises an epoch by one, and no run is leased a thousand times a second
// for as long as the clock runs. Ended runs too: somebody may reopen one.
const RAISE_EPOCHS: &str = "UPDATE runs SET epoch = max(epoch + 1, ?1)";

const LEASED: &str = "SELECT namespace_id, run_id, epoch
   FROM runs INDEXED BY runs_leased
  WHERE lease_worker IS NOT NULL";

const WORKERS: &str = "SELECT worker_id
   FROM workers
  WHERE status <> 3";

/// Makes every lease in the file, and every one that was given out after it was copied, a stale one. Leased
/// runs become ready without counting as an attempt, workers go offline.
pub fn fence(path: &Path) -> Result<(), StoreError> {
    let lock = FileLock::take(path)?;
    let writer = sqlite::writer(path)?;
    migrate(&writer)?;
    identity::sign(&writer)?;
    let clock = SystemClock::new();
    writer.execute(RAISE_EPOCHS, bind![clock.now().0 / 1000])?;
    let leases = writer.all(LEASED, &[], |row| {
        Ok(LeaseRef { namespace: row.get(0)?, run: row.get(1)?, epoch: row.get(2)? })
    })?;
    let workers = writer.all(WORKERS, &[], |row| row.get(0))?;
    // The rest by the rules, as a server would: histories stay whole, and limits and steps know of it.
    let backend = SqliteBackend::new(writer, lock, Check::default());
    let (lane, handle) = Lane::new(backend, Arc::new(clock), Arc::new(Silent), LaneOptions::default());
    let pool = ReadPool::over(Connections { looking: vec![], dispatch: vec![] }, handle.stats())?;
    let store = Store::new(handle, SqliteReads::new(pool), String::new());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime =
        runtime.map_err(|error| StoreError::Unavailable(format!("could not make a runtime: {error}")))?;
    runtime.block_on(async {
        let released = async {
            let released = release(&store, leases, workers).await;
            store.close().await;
            released
        };
        // When both are done the connection is closed, and nothing is left in a log beside the file.
        tokio::join!(released, lane.run()).0
    })
}

async fn release(store: &Store, leases: Vec<LeaseRef>, workers: Vec<WorkerId>) -> Result<(), StoreError> {
    let release = |lease: &LeaseRef| lease.report(act::Release { why: WHY.to_owned() });
    for chunk in leases.chunks(CHUNK) {
        for outcome in store.apply(chunk.iter().map(release).collect()).await? {
            outcome.map_err(|refused| StoreError::Bug(format!("could not give a run back: {refused}")))?;
        }
    }
    for id in workers {
        let left = store.ask(Deregister { id }).await?;
        left.map_err(|refused| StoreError::Bug(format!("could not take a worker offline: {refused}")))?;
    }
    Ok(())
}
