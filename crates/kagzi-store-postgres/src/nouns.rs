//! Nouns: their rows, for the writer and for readers.

use async_trait::async_trait;
use kagzi_model::{Name, NounKey, NounRow, Timestamp};
use kagzi_store::{Changes, Direction, NounReads, NounRows, StoreError, noun};
use tokio_postgres::Row;

use crate::{
    backend::PostgresBackend,
    reads::PostgresReads,
    row,
    session::Session,
    write::{Columns, Sending, column, send, text},
};

kagzi_store::statements! {
/// Every statement about nouns; a test prepares each on a real database.
STATEMENTS:

const LOAD_NOUN: &str = concat!(
    "SELECT ",
    noun!(columns),
    "
   FROM kagzi.nouns
  WHERE namespace_id = $1
    AND kind = $2
    AND noun_id = $3"
);

pub const NOUNS_BEHIND: &str = concat!(
    "SELECT ",
    noun!(columns),
    "
   FROM kagzi.nouns
  WHERE namespace_id = $1
    AND kind = $2
    AND noun_id > $3
  ORDER BY noun_id
  LIMIT $4"
);

const NOUNS_BEFORE: &str = concat!(
    "SELECT ",
    noun!(columns),
    "
   FROM kagzi.nouns
  WHERE namespace_id = $1
    AND kind = $2
    AND (noun_id < $3 OR $3 = '')
  ORDER BY noun_id DESC
  LIMIT $4"
);

const INSERT_NOUNS: &str = concat!(
    "INSERT INTO kagzi.nouns (",
    noun!(inserted),
    ")
 SELECT *
   FROM unnest(",
    noun!(arrays),
    ")"
);

// As with runs: another version there ends the transaction here and now.
const UPDATE_NOUNS: &str = concat!(
    "WITH done AS (
    UPDATE kagzi.nouns
       SET ",
    noun!(set_new),
    "
      FROM unnest(",
    noun!(changed_arrays),
    ", $7::bigint[])
           AS new (",
    noun!(changed),
    ", from_version)
     WHERE nouns.namespace_id = new.namespace_id
       AND nouns.kind = new.kind
       AND nouns.noun_id = new.noun_id
       AND nouns.version = new.from_version
 RETURNING 1
)
SELECT 1 / (count(*) = cardinality($3))::integer
  FROM done"
);

const DELETE_NOUNS: &str = "WITH done AS (
    DELETE FROM kagzi.nouns
     USING unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
           AS old (namespace_id, kind, noun_id, version)
     WHERE nouns.namespace_id = old.namespace_id
       AND nouns.kind = old.kind
       AND nouns.noun_id = old.noun_id
       AND nouns.version = old.version
 RETURNING 1
)
SELECT 1 / (count(*) = cardinality($3))::integer
  FROM done";
}

impl NounRows for PostgresBackend {
    async fn load_noun(&mut self, key: &NounKey) -> Result<Option<NounRow>, StoreError> {
        let rows = self.query(LOAD_NOUN, &[&&*key.namespace, &&*key.kind, &&*key.id]).await?;
        rows.first().map(read).transpose()
    }

    async fn nouns_of(
        &mut self,
        namespace: &Name,
        kind: &str,
        limit: usize,
    ) -> Result<Vec<NounRow>, StoreError> {
        let rows = self.query(NOUNS_BEHIND, &[&&**namespace, &kind, &"", &(limit as i64)]).await?;
        rows.iter().map(read).collect()
    }
}

/// The statements for changed nouns, in order.
pub fn statements(session: &Session, changes: Changes<NounRow>) -> Vec<Sending<'_>> {
    let Changes { deleted, implicit, inserted, updated } = changes;
    debug_assert!(implicit.is_empty(), "a noun is made by a request");
    let mut sending: Vec<Sending<'_>> = Vec::new();
    if !deleted.is_empty() {
        sending.push(Box::pin(async move {
            let columns = vec![
                column(&deleted, |(key, _)| &*key.namespace),
                column(&deleted, |(key, _)| &*key.kind),
                column(&deleted, |(key, _)| &*key.id),
                column(&deleted, |(_, version)| version.cast_signed()),
            ];
            send(session, DELETE_NOUNS, columns).await
        }));
    }
    if !inserted.is_empty() {
        sending.push(Box::pin(async move {
            let mut columns = columns(&inserted);
            columns.push(column(&inserted, |row| row.created_at.0));
            send(session, INSERT_NOUNS, columns).await
        }));
    }
    if !updated.is_empty() {
        sending.push(Box::pin(async move {
            let (from, rows): (Vec<u64>, Vec<NounRow>) = updated.into_iter().unzip();
            let mut columns = columns(&rows);
            columns.push(column(&from, |version| version.cast_signed()));
            send(session, UPDATE_NOUNS, columns).await
        }));
    }
    sending
}

fn columns(rows: &[NounRow]) -> Columns<'_> {
    let columns: [_; noun!(changed_width)] = [
        column(rows, |row| &*row.key.namespace),
        column(rows, |row| &*row.key.kind),
        column(rows, |row| &*row.key.id),
        column(rows, |row| row.version.cast_signed()),
        column(rows, |row| text(&row.body)),
        column(rows, |row| row.updated_at.0),
    ];
    columns.into()
}

#[async_trait]
impl NounReads for PostgresReads {
    async fn nouns(
        &self,
        namespace: &Name,
        kind: &str,
        direction: Direction,
        from: Option<&Name>,
        limit: usize,
    ) -> Result<Vec<NounRow>, StoreError> {
        let sql = match direction {
            Direction::Next => NOUNS_BEHIND,
            Direction::Prev => NOUNS_BEFORE,
        };
        let from = from.map_or("", |from| from);
        let rows = self.query(sql, &[&&**namespace, &kind, &from, &(limit as i64)]).await?;
        rows.iter().map(read).collect()
    }
}

pub fn read(found: &Row) -> Result<NounRow, StoreError> {
    let key =
        NounKey { namespace: row::name(found, 0)?, kind: row::name(found, 1)?, id: row::name(found, 2)? };
    Ok(NounRow {
        key,
        version: row::get::<i64>(found, 3)?.cast_unsigned(),
        body: row::get(found, 4)?,
        updated_at: Timestamp(row::get(found, 5)?),
        created_at: Timestamp(row::get(found, 6)?),
    })
}
