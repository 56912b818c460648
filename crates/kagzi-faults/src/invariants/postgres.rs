//! The rows of a PostgreSQL database.

use tokio_postgres::{Client, NoTls, Row};

use super::rows::{COMPLETED_TOTAL, FAILED_TOTAL, MUST_BE_NONE, Rows, Run, SINCE_POSTGRES, by_run, json};
use crate::flat_events;

/// Reads everything.
pub async fn read(url: &str) -> Rows {
    let (db, connection) = tokio_postgres::connect(url, NoTls).await.expect("the database answers");
    let driving = tokio::spawn(connection);
    // The statements are those of SQLite, without the schema.
    db.batch_execute("SET search_path TO kagzi").await.expect("a session takes settings");
    let mut must_be_none = Vec::new();
    for (claim, sql) in MUST_BE_NONE {
        must_be_none.push((*claim, number(&db, &sql.replace("{since}", SINCE_POSTGRES)).await));
    }
    let rows = Rows {
        runs: select(&db, RUNS).await.iter().map(run).map(|run| (run.id.clone(), run)).collect(),
        events: by_run(flat_events::postgres::read(&db).await),
        completed_total: number(&db, COMPLETED_TOTAL).await,
        failed_total: number(&db, FAILED_TOTAL).await,
        totals_lag: true,
        must_be_none,
    };
    driving.abort();
    rows
}

async fn select(db: &Client, sql: &str) -> Vec<Row> {
    db.query(sql, &[]).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"))
}

async fn number(db: &Client, sql: &str) -> i64 {
    select(db, sql).await[0].get(0)
}

const RUNS: &str = "
    SELECT run_id::text, workflow_type, status::bigint, state, epoch, due_at, sweep_at, lease_worker::text,
           finished_at, deadline_at, options, coalesce(first_seq, 1)
    FROM runs";

fn run(row: &Row) -> Run {
    Run {
        id: row.get(0),
        workflow_type: row.get(1),
        status: row.get(2),
        state: json(row.get(3)),
        epoch: row.get(4),
        due_at: row.get(5),
        sweep_at: row.get(6),
        lease_worker: row.get(7),
        finished_at: row.get(8),
        deadline_at: row.get(9),
        options: json(row.get(10)),
        first_seq: row.get(11),
    }
}
