//! While somebody keeps a transaction open, entries of rows that have moved on stay in the indexes. What a
//! claim reads of them is bounded all the same.

mod database;

use database::Database;
use kagzi_store_postgres::fixture;
use kagzi_store_tests::Stage;
use tokio_postgres::NoTls;

const RUNS: usize = 1_500;
/// Between two starts, so that all of them take a quarter of a minute.
const APART_MS: u64 = 10;

/// Entries of these indexes that have been read so far. A server tells the statistics when its connection
/// ends.
async fn entries_read(stage: &mut Stage, url: &str, indexes: &str) -> i64 {
    stage.reopen().await;
    let read = format!("SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE {indexes}");
    fixture::sql(url, &read).await[0].parse().unwrap()
}

/// Begins a transaction that sees the database as it is now, and keeps it open.
async fn hold_open(url: &str) -> tokio_postgres::Client {
    let (reader, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let hold = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM kagzi.runs";
    reader.batch_execute(hold).await.unwrap();
    reader
}

/// Claims and completes so many runs, one at a time.
async fn complete(stage: &Stage, runs: usize) {
    let mut standing = stage.stand_by(1).await;
    for _ in 0..runs {
        let lease = standing.next().await.lease();
        stage.ok(stage.complete(&lease)).await;
    }
    // The run after the last one was claimed with it.
    let next = standing.next().await;
    let leave = kagzi_store::Deregister { id: standing.worker };
    stage.worker(leave).await.unwrap();
    assert_eq!(stage.run(next.run.id).await.epoch, next.run.epoch, "it is given back");
}

#[tokio::test]
async fn a_claim_reads_no_more_of_an_index_the_longer_a_transaction_is_open() {
    let database = Database::fresh().await;
    let url = database.url().to_owned();
    let mut stage = Stage::open(database).await;
    for n in 0..RUNS {
        stage.start(&format!("order-{n}")).await;
        stage.pass_ms(APART_MS);
    }
    let reader = hold_open(&url).await;

    complete(&stage, RUNS - 400).await;
    let before = entries_read(&mut stage, &url, "indexrelname = 'runs_due'").await;
    complete(&stage, 300).await;
    let read = entries_read(&mut stage, &url, "indexrelname = 'runs_due'").await - before;

    // Through all that is dead, each of the 300 claims would read over a thousand entries.
    let per_claim = read / 300;
    assert!(per_claim < 600, "{per_claim} entries per claim");
    println!("{per_claim} entries read per claim beside {} dead ones", RUNS - 400);
    reader.batch_execute("COMMIT").await.unwrap();
}

/// So many runs are completed by one worker that beats after each ten, with the run that it holds.
async fn complete_and_beat(stage: &Stage, runs: usize) -> usize {
    let mut standing = stage.stand_by(1).await;
    let mut beats = 0;
    for n in 0..runs {
        let lease = standing.next().await.lease();
        if n % 10 == 0 {
            let answer = stage.beat(standing.worker, vec![lease.clone()]).await.unwrap();
            assert_eq!(answer.lost.len(), 0);
            beats += 1;
        }
        stage.ok(stage.complete(&lease)).await;
    }
    standing.next().await;
    stage.worker(kagzi_store::Deregister { id: standing.worker }).await.unwrap();
    beats
}

#[tokio::test]
async fn a_heartbeat_reads_what_the_worker_holds_and_not_what_it_ever_held() {
    let database = Database::fresh().await;
    let url = database.url().to_owned();
    let mut stage = Stage::open(database).await;
    for n in 0..=RUNS {
        stage.start(&format!("order-{n}")).await;
    }
    let reader = hold_open(&url).await;
    // What workers hold, and their own rows.
    let indexes = "indexrelname = 'runs_leased' OR indexrelname LIKE 'workers%'";

    let before = entries_read(&mut stage, &url, indexes).await;
    let beats = complete_and_beat(&stage, RUNS - 1).await;
    let read = entries_read(&mut stage, &url, indexes).await - before;

    // Through all that is dead, a heartbeat would read half of all runs on average, and each commit half of
    // all versions of the worker's row. A commit that leases looks at the worker's row: at its versions since
    // it was written anew.
    let versions = "SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'workers'";
    let versions: i64 = fixture::sql(&url, versions).await[0].parse().unwrap();
    let per_run = read as f64 / RUNS as f64;
    println!(
        "{read} entries for {beats} heartbeats and {RUNS} runs; the worker's row was written {versions} times"
    );
    assert!(versions < 2 * beats as i64, "{versions} versions for {beats} heartbeats");
    assert!(per_run < 20.0, "{per_run} entries per run");
    reader.batch_execute("COMMIT").await.unwrap();
}
