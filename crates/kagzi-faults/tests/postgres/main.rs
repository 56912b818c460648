//! Several servers on one PostgreSQL: the rows of FAULTS.md that are marked P, with real processes. Names are
//! claims.
//!
//! One test at a time: each has a database, two servers and many workers on perhaps two cores, and measures
//! itself against leases in real time.

mod asks;
mod children;
mod failover;
mod invariants;
mod limits;
mod lost_server;
mod outage;
mod pooler;
mod promises;
mod races;
mod restarts;
mod schedules;
mod signals;
mod stalled;
mod ten_thousand_runs;
mod versions;
mod waits;

use kagzi_faults::Stage;
use tokio::sync::{Mutex, MutexGuard};
use tokio_postgres::NoTls;

/// Waits until no other test of this program runs.
async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

/// Both addresses, as users write them, the first one preferred.
fn addresses(first: &Stage, second: &Stage) -> String {
    format!("{},{}", first.address, second.address)
}

/// What a statement counts; none while the database is away.
async fn count(url: &str, sql: &str) -> Option<i64> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.ok()?;
    let driving = tokio::spawn(connection);
    let row = client.query_one(sql, &[]).await.ok();
    driving.abort();
    row.map(|row| row.get(0))
}
