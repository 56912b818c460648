//! Nouns: their rows, for the writer and for readers.

use async_trait::async_trait;
use kagzi_model::{Name, NounKey, NounRow};
use kagzi_store::{Changes, Direction, NounReads, NounRows, StoreError, noun};

use crate::{
    backend::SqliteBackend,
    db::Db,
    reads::SqliteReads,
    value::{Row, Value, bind},
};

kagzi_store::statements! {
/// Every statement about nouns; a test prepares each on a real database.
STATEMENTS:

const LOAD_NOUN: &str = concat!(
    "SELECT ",
    noun!(columns),
    "
   FROM nouns
  WHERE namespace_id = ?1
    AND kind = ?2
    AND noun_id = ?3"
);

const NOUNS_BEHIND: &str = concat!(
    "SELECT ",
    noun!(columns),
    "
   FROM nouns
  WHERE namespace_id = ?1
    AND kind = ?2
    AND noun_id > ?3
  ORDER BY noun_id
  LIMIT ?4"
);

const NOUNS_BEFORE: &str = concat!(
    "SELECT ",
    noun!(columns),
    "
   FROM nouns
  WHERE namespace_id = ?1
    AND kind = ?2
    AND (noun_id < ?3 OR ?3 = '')
  ORDER BY noun_id DESC
  LIMIT ?4"
);

const INSERT_NOUN: &str = concat!(
    "INSERT INTO nouns (",
    noun!(inserted),
    ")
 VALUES (",
    noun!(values),
    ")"
);

const UPDATE_NOUN: &str = concat!(
    "UPDATE nouns
    SET ",
    noun!(set),
    "
  WHERE namespace_id = ?1
    AND kind = ?2
    AND noun_id = ?3
    AND version = ?7"
);

const DELETE_NOUN: &str = "DELETE FROM nouns
  WHERE namespace_id = ?1
    AND kind = ?2
    AND noun_id = ?3
    AND version = ?4";
}

impl NounRows for SqliteBackend {
    async fn load_noun(&mut self, key: &NounKey) -> Result<Option<NounRow>, StoreError> {
        self.db().first(LOAD_NOUN, bind![key.namespace, key.kind, key.id], read)
    }

    async fn nouns_of(
        &mut self,
        namespace: &Name,
        kind: &str,
        limit: usize,
    ) -> Result<Vec<NounRow>, StoreError> {
        self.db().all(NOUNS_BEHIND, bind![namespace, kind, Name::empty(), limit], read)
    }
}

/// Nouns of a kind behind one of them.
pub fn behind(
    db: &Db,
    namespace: &Name,
    kind: &Name,
    from: &Name,
    limit: usize,
) -> Result<Vec<NounRow>, StoreError> {
    db.all(NOUNS_BEHIND, bind![namespace, kind, from, limit], read)
}

/// Writes what changed. We are alone on the file, so a row that is not as memory says means: reload.
pub fn write(db: &Db, changes: &Changes<NounRow>) -> Result<(), StoreError> {
    let Changes { deleted, implicit, inserted, updated } = changes;
    debug_assert!(implicit.is_empty(), "a noun is made by a request");
    for (key, from) in deleted {
        one(db.execute(DELETE_NOUN, bind![key.namespace, key.kind, key.id, *from])?)?;
    }
    for row in inserted {
        let NounRow { key, version, body, created_at, updated_at } = row;
        let all: &[Value<'_>; noun!(inserted_width)] =
            bind![key.namespace, key.kind, key.id, *version, *body, *updated_at, *created_at];
        one(db.execute(INSERT_NOUN, all)?)?;
    }
    for (from, row) in updated {
        let NounRow { key, version, body, created_at: _, updated_at } = row;
        let all: &[Value<'_>; noun!(changed_width) + 1] =
            bind![key.namespace, key.kind, key.id, *version, *body, *updated_at, *from];
        one(db.execute(UPDATE_NOUN, all)?)?;
    }
    Ok(())
}

fn one(changed: usize) -> Result<(), StoreError> {
    match changed {
        1 => Ok(()),
        _ => Err(StoreError::Conflict("a noun has another version than memory says".into())),
    }
}

#[async_trait]
impl NounReads for SqliteReads {
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
        let (namespace, kind) = (namespace.clone(), Name::from(kind));
        let from = from.cloned().unwrap_or_default();
        self.pool().read(move |db| db.all(sql, bind![namespace, kind, from, limit], read)).await
    }
}

fn read(row: &Row<'_>) -> Result<NounRow, StoreError> {
    Ok(NounRow {
        key: NounKey { namespace: row.get(0)?, kind: row.get(1)?, id: row.get(2)? },
        version: row.get(3)?,
        body: row.get(4)?,
        updated_at: row.get(5)?,
        created_at: row.get(6)?,
    })
}
