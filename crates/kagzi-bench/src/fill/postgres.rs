use super::{Chunks, copied};
use anyhow::Context;
use tokio_postgres::{Client, NoTls};

/// A crash costs nothing but the benchmark.
const SETTINGS: &str = "
SET synchronous_commit = off;
CREATE TEMP TABLE copy (id UUID NOT NULL PRIMARY KEY);";

const TABLES: &str = "
SELECT table_name::TEXT
FROM information_schema.columns
JOIN information_schema.tables USING (table_schema, table_name)
WHERE table_schema = 'kagzi' AND table_type = 'BASE TABLE' AND column_name = 'run_id'";

const COLUMNS: &str = "
SELECT column_name::TEXT
FROM information_schema.columns
WHERE table_schema = 'kagzi' AND table_name = $1 AND is_generated = 'NEVER' AND is_identity = 'NO'";

const INSERT_IDS: &str = "
INSERT INTO copy (id)
SELECT unnest($1::UUID[])";

/// Every row about the prototype, for every id, in every table that knows runs.
pub async fn copy(url: &str, chunks: Chunks) -> anyhow::Result<()> {
    let (mut client, connection) =
        tokio_postgres::connect(url, NoTls).await.context("could not open the scratch database")?;
    let connection = tokio::spawn(connection);
    let copied = copy_all(&mut client, chunks).await;
    drop(client);
    connection.abort();
    copied
}

async fn copy_all(client: &mut Client, chunks: Chunks) -> anyhow::Result<()> {
    client.batch_execute(SETTINGS).await?;
    let mut inserts = Vec::new();
    for row in client.query(TABLES, &[]).await? {
        let table: String = row.get(0);
        client
            .batch_execute(&format!(
                "CREATE TEMP TABLE prototype_{table} AS SELECT * FROM kagzi.{table} WHERE run_id = '{}'",
                chunks.prototype
            ))
            .await?;
        let columns: Vec<String> =
            client.query(COLUMNS, &[&table]).await?.iter().map(|row| row.get(0)).collect();
        let values: Vec<&str> = columns.iter().map(|column| copied(column)).collect();
        inserts.push(format!(
            "INSERT INTO kagzi.{table} ({}) SELECT {} FROM copy, prototype_{table} ORDER BY copy.id",
            columns.join(", "),
            values.join(", ")
        ));
    }
    for ids in chunks {
        let transaction = client.transaction().await?;
        transaction.execute("DELETE FROM copy", &[]).await?;
        transaction.execute(INSERT_IDS, &[&ids]).await?;
        for insert in &inserts {
            transaction.execute(insert, &[]).await?;
        }
        transaction.commit().await?;
    }
    // As autovacuum would have done in the time that so many runs take.
    Ok(client.batch_execute("VACUUM ANALYZE").await?)
}
