use crate::cleanup::Cleanup;
use crate::percentile::round;
use crate::store::scratch_database;
use anyhow::Context;
use std::time::{Duration, Instant};
use tokio_postgres::{Client, NoTls};

const ROWS_PER_BATCH: u32 = 100;

pub struct Rates {
    pub commits_per_s: f64,
    pub rows_per_s: f64,
}

const SCHEMA: &str = "
CREATE TABLE record (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    payload BYTEA NOT NULL
)";

const INSERT: &str = "
INSERT INTO record (payload)
SELECT $1
FROM generate_series(1, $2)";

/// What one client gets out of PostgreSQL when every commit is durable.
pub async fn rates(url: &str, span: Duration, cleanup: &Cleanup) -> anyhow::Result<Rates> {
    let url = scratch_database(url, cleanup).await?;
    let (client, connection) =
        tokio_postgres::connect(&url, NoTls).await.context("could not open the scratch database")?;
    let connection = tokio::spawn(connection);
    client.batch_execute("SET synchronous_commit = on").await?;
    client.batch_execute(SCHEMA).await?;
    let singles_per_s = commits_per_s(&client, 1, span).await?;
    let batches_per_s = commits_per_s(&client, ROWS_PER_BATCH, span).await?;
    drop(client);
    connection.abort();
    Ok(Rates {
        commits_per_s: round(singles_per_s, 1),
        rows_per_s: round(batches_per_s * f64::from(ROWS_PER_BATCH), 1),
    })
}

async fn commits_per_s(client: &Client, rows: u32, span: Duration) -> anyhow::Result<f64> {
    let insert = client.prepare(INSERT).await?;
    let payload = vec![0x6bu8; 100];
    let rows = i32::try_from(rows)?;
    let began = Instant::now();
    let mut commits = 0u32;
    while began.elapsed() < span {
        // Outside a transaction every statement is one.
        client.execute(&insert, &[&payload, &rows]).await?;
        commits += 1;
    }
    Ok(f64::from(commits) / began.elapsed().as_secs_f64())
}
