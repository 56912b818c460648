//! The same on a PostgreSQL database.

use kagzi_store::EventRow;
use tokio_postgres::{Client, NoTls};

use super::{FlatEvent, WholeRow, packed};

const CREATE: &str =
    "CREATE TABLE kagzi.flat_events (namespace_id TEXT, run_id UUID, seq BIGINT, at BIGINT, kind SMALLINT,
                                                      step TEXT, detail TEXT, payload BYTEA)";

/// Reads all events, in order.
pub(crate) async fn read(db: &Client) -> Vec<EventRow> {
    let sql = "SELECT run_id, namespace_id, first_seq, at, kinds, detail, payload
                 FROM kagzi.events ORDER BY run_id, first_seq";
    let rows = db.query(sql, &[]).await.expect("events can be read");
    let whole = rows.iter().map(|row| WholeRow {
        run: row.get(0),
        namespace: row.get(1),
        first_seq: row.get(2),
        at: row.get(3),
        kinds: row.get(4),
        detail: row.get(5),
        payload: row.get(6),
    });
    whole.flat_map(WholeRow::events).collect()
}

/// Makes the flat table, changes the database by SQL, and writes back what the flat table has then.
pub async fn change_flat(url: &str, sql: &str) {
    let (db, connection) = tokio_postgres::connect(url, NoTls).await.expect("the database answers");
    let driving = tokio::spawn(connection);
    flatten(&db).await;
    db.batch_execute(&format!("SET search_path TO kagzi; {sql}"))
        .await
        .unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    unflatten(&db).await;
    driving.abort();
}

/// Makes the flat table.
pub async fn flatten_on(url: &str) {
    let (db, connection) = tokio_postgres::connect(url, NoTls).await.expect("the database answers");
    let driving = tokio::spawn(connection);
    flatten(&db).await;
    driving.abort();
}

async fn flatten(db: &Client) {
    db.batch_execute(CREATE).await.expect("there is none yet");
    let insert =
        db.prepare("INSERT INTO kagzi.flat_events VALUES ($1, $2, $3, $4, $5, $6, $7, $8)").await.unwrap();
    for EventRow { namespace, run, event } in read(db).await {
        let step = event.kind.step().map(|(step, _)| step.to_string());
        let payload = event.payload.as_ref().map(|payload| payload.data.to_vec());
        let (seq, number) = (event.seq.cast_signed(), i16::from(event.kind.number()));
        let detail = event.kind.to_json();
        db.execute(&insert, &[&&*namespace, &run.0, &seq, &event.at.0, &number, &step, &detail, &payload])
            .await
            .unwrap();
    }
}

async fn unflatten(db: &Client) {
    let sql =
        "SELECT namespace_id, run_id, seq, at, detail, payload FROM kagzi.flat_events ORDER BY run_id, seq";
    let rows = db.query(sql, &[]).await.unwrap();
    let flat = rows.iter().map(|row| FlatEvent {
        namespace: row.get(0),
        run: row.get(1),
        seq: row.get(2),
        at: row.get(3),
        detail: row.get(4),
        payload: row.get(5),
    });
    let packed = packed(flat.collect());
    db.batch_execute("DELETE FROM kagzi.events; DROP TABLE kagzi.flat_events").await.unwrap();
    let insert = db.prepare("INSERT INTO kagzi.events VALUES ($1, $2, $3, $4, $5, $6, $7)").await.unwrap();
    for row in packed {
        let (seq, payload) = (row.first_seq.cast_signed(), row.payload.as_deref());
        db.execute(
            &insert,
            &[&&*row.namespace, &row.run.0, &seq, &row.at.0, &row.kinds, &row.detail, &payload],
        )
        .await
        .unwrap();
    }
}
