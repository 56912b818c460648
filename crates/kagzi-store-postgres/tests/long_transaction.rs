//! While somebody keeps a transaction open, entries of rows that have moved on stay in the indexes. What a claim reads of
//! them is bounded all the same.

mod database;

use database::Database;
use kagzi_store_postgres::fixture;
use kagzi_store_tests::Stage;
use tokio_postgres::NoTls;

const RUNS: usize = 1_500;
/// Between two starts, so that all of them take a quarter of a minute.
const APART_MS: u64 = 10;

/// Index entries that claims have read so far. A server tells the statistics when its connection ends.
async fn entries_read(stage: &mut Stage, url: &str) -> i64 {
    stage.reopen().await;
    let read = "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'runs_due'";
    fixture::sql(url, read).await[0].parse().unwrap()
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
    let leave = kagzi_store::WorkerCommand::Deregister { id: standing.worker };
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
    let (reader, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    let connected = tokio::spawn(connection);
    let hold = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM kagzi.runs";
    reader.batch_execute(hold).await.unwrap();

    complete(&stage, RUNS - 400).await;
    let before = entries_read(&mut stage, &url).await;
    complete(&stage, 300).await;
    let read = entries_read(&mut stage, &url).await - before;

    // Through all that is dead, each of the 300 claims would read over a thousand entries.
    let per_claim = read / 300;
    assert!(per_claim < 600, "{per_claim} entries per claim");
    println!("{per_claim} entries read per claim beside {} dead ones", RUNS - 400);
    reader.batch_execute("COMMIT").await.unwrap();
    connected.abort();
}
