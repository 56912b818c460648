//! What operators set: the statements about namespaces and gates.

use std::collections::HashMap;

use async_trait::async_trait;
use kagzi_model::{Gate, GateKey, Mark, Name, Namespace, Timestamp};
use kagzi_store::{Changes, ControlReads, ControlRows, Depth, ListedNamespace, StoreError, gate, namespace};

use crate::{
    backend::SqliteBackend,
    db::Db,
    reads::SqliteReads,
    value::{Row, bind, json},
};

kagzi_store::statements! {
/// Every statement of the controls; a test prepares each on a real database.
STATEMENTS:

const NAMESPACE: &str = concat!(
    "SELECT ",
    namespace!(columns),
    "
   FROM namespaces
  WHERE namespace_id = ?1"
);

const NAMESPACES: &str = concat!(
    "SELECT ",
    namespace!(columns),
    "
   FROM namespaces
  WHERE namespace_id > ?1
  ORDER BY namespace_id
  LIMIT ?2"
);

// In the order of the primary key the widest come first: the empty text sorts before every name.
const GATES: &str = concat!(
    "SELECT ",
    gate!(columns),
    "
   FROM gates
  WHERE namespace_id = ?1
  ORDER BY task_queue, workflow_type"
);

// Asked once per gate, when its limit is first needed; the lane counts on by itself.
const LEASED_BEHIND: &str = "SELECT count(*)
   FROM runs INDEXED BY runs_leased
  WHERE lease_worker IS NOT NULL
    AND namespace_id = ?1
    AND (?2 = '' OR task_queue = ?2)
    AND (?3 = '' OR workflow_type = ?3)";

const INSERT_NAMESPACE: &str = concat!(
    "INSERT INTO namespaces (",
    namespace!(inserted),
    ")
 VALUES (",
    namespace!(values),
    ")
     ON CONFLICT (namespace_id) DO NOTHING"
);

const UPDATE_NAMESPACE: &str = concat!(
    "UPDATE namespaces
    SET ",
    namespace!(set),
    "
  WHERE namespace_id = ?1
    AND version = ?12"
);

const PUT_GATE: &str = concat!(
    "INSERT OR REPLACE INTO gates (",
    gate!(inserted),
    ")
 VALUES (",
    gate!(values),
    ")"
);

const DELETE_GATE: &str = "DELETE FROM gates
  WHERE namespace_id = ?1
    AND task_queue = ?2
    AND workflow_type = ?3";

const DEPTHS_DUE: &str = "SELECT task_queue, workflow_type, sum(due_at <= ?2), sum(due_at > ?2), min(due_at)
   FROM runs INDEXED BY runs_due
  WHERE namespace_id = ?1
    AND due_at IS NOT NULL
  GROUP BY task_queue, workflow_type";

const DEPTHS_LEASED: &str = "SELECT task_queue, workflow_type, count(*)
   FROM runs INDEXED BY runs_leased
  WHERE lease_worker IS NOT NULL
    AND namespace_id = ?1
  GROUP BY task_queue, workflow_type";
}

impl ControlRows for SqliteBackend {
    async fn load_controls(
        &mut self,
        namespace: &Name,
    ) -> Result<Option<(Namespace, Vec<Gate>)>, StoreError> {
        let Some(found) = self.db().first(NAMESPACE, bind![namespace], read_namespace)? else {
            return Ok(None);
        };
        Ok(Some((found, self.db().all(GATES, bind![namespace], read_gate)?)))
    }

    async fn leased_behind(&mut self, key: &GateKey) -> Result<u32, StoreError> {
        let (queue, kind) = key.columns();
        let counted = self.db().first(LEASED_BEHIND, bind![key.namespace, queue, kind], |row| row.get(0))?;
        Ok(counted.unwrap_or(0))
    }
}

/// Writes what changed. We are alone on the file, so a row that is not as memory says means: reload.
pub fn write(db: &Db, namespaces: &Changes<Namespace>, gates: &Changes<Gate>) -> Result<(), StoreError> {
    let conflict = |what: &str| Err(StoreError::Conflict(format!("{what} is not as memory says")));
    let Changes { deleted, implicit, inserted, updated } = namespaces;
    debug_assert!(deleted.is_empty(), "namespaces stay");
    for row in implicit {
        put_namespace(db, INSERT_NAMESPACE, row, None)?;
    }
    for row in inserted {
        if put_namespace(db, INSERT_NAMESPACE, row, None)? != 1 {
            return conflict("a new namespace");
        }
    }
    for (from, row) in updated {
        if put_namespace(db, UPDATE_NAMESPACE, row, Some(*from))? != 1 {
            return conflict("a namespace");
        }
    }
    for (key, _) in &gates.deleted {
        let (queue, kind) = key.columns();
        db.execute(DELETE_GATE, bind![key.namespace, queue, kind])?;
    }
    for gate in gates.rows() {
        let (queue, kind) = gate.key.columns();
        let paused = gate.paused.as_ref();
        db.execute(
            PUT_GATE,
            bind![
                gate.key.namespace,
                queue,
                kind,
                paused.map(|mark| &mark.by),
                paused.map(|mark| &mark.note),
                paused.map(|mark| mark.since),
                gate.max_concurrent,
                gate.updated_at,
            ],
        )?;
    }
    Ok(())
}

fn put_namespace(db: &Db, sql: &str, row: &Namespace, from: Option<u64>) -> Result<usize, StoreError> {
    let disabled = row.disabled.as_ref();
    let defaults = json(&row.defaults);
    let values: [&dyn crate::value::Bind; namespace!(inserted_width)] = [
        &row.name,
        &row.description,
        &disabled.map(|mark| &mark.by),
        &disabled.map(|mark| &mark.note),
        &disabled.map(|mark| mark.since),
        &defaults,
        &row.retention_ms,
        &row.handler_queue,
        &row.created_at,
        &row.updated_at,
        &row.version,
    ];
    let mut bound: Vec<_> = values.iter().map(|value| value.value()).collect();
    bound.extend(from.as_ref().map(crate::value::Bind::value));
    db.execute(sql, &bound)
}

fn read_namespace(row: &Row<'_>) -> Result<Namespace, StoreError> {
    Ok(Namespace {
        name: row.get(0)?,
        description: row.get(1)?,
        disabled: read_mark(row, 2)?,
        defaults: row.json(5)?,
        retention_ms: row.get(6)?,
        handler_queue: row.get(7)?,
        created_at: row.get(8)?,
        updated_at: row.get(9)?,
        version: row.get(10)?,
    })
}

fn read_gate(row: &Row<'_>) -> Result<Gate, StoreError> {
    Ok(Gate {
        key: GateKey::from_columns(row.get(0)?, row.get(1)?, row.get(2)?),
        paused: read_mark(row, 3)?,
        max_concurrent: row.get(6)?,
        updated_at: row.get(7)?,
    })
}

/// Reads three columns: by, note, since.
fn read_mark(row: &Row<'_>, at: usize) -> Result<Option<Mark>, StoreError> {
    let Some(by) = row.get(at)? else { return Ok(None) };
    Ok(Some(Mark { by, note: row.get(at + 1)?, since: row.get(at + 2)? }))
}

#[async_trait]
impl ControlReads for SqliteReads {
    async fn namespace(&self, name: &Name) -> Result<Option<Namespace>, StoreError> {
        let name = name.clone();
        self.pool().read(move |db| db.first(NAMESPACE, bind![name], read_namespace)).await
    }

    async fn namespaces(
        &self,
        after: Option<&Name>,
        limit: usize,
    ) -> Result<Vec<ListedNamespace>, StoreError> {
        let after = after.cloned().unwrap_or_default();
        let listed = |row: &Row<'_>| ListedNamespace::of(row.get(0)?, read_namespace(row));
        self.pool().read(move |db| db.all(NAMESPACES, bind![after, limit], listed)).await
    }

    async fn gates(&self, namespace: &Name) -> Result<Vec<Gate>, StoreError> {
        let namespace = namespace.clone();
        self.pool().read(move |db| db.all(GATES, bind![namespace], read_gate)).await
    }

    async fn depths(&self, namespace: &Name, now: Timestamp) -> Result<Vec<Depth>, StoreError> {
        let namespace = namespace.clone();
        self.pool().read(move |db| db.transaction(|| read_depths(db, &namespace, now))).await
    }
}

fn read_depths(db: &Db, namespace: &Name, now: Timestamp) -> Result<Vec<Depth>, StoreError> {
    let due = db.all(DEPTHS_DUE, bind![namespace, now], |row| {
        let oldest: Timestamp = row.get(4)?;
        Ok(Depth {
            task_queue: row.get(0)?,
            workflow_type: row.get(1)?,
            ready: row.get(2)?,
            waiting: row.get(3)?,
            leased: 0,
            oldest_ready_at: Some(oldest).filter(|at| *at <= now),
        })
    })?;
    let leased: HashMap<(Name, Name), u64> = db
        .all(DEPTHS_LEASED, bind![namespace], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?
        .into_iter()
        .collect();
    Ok(Depth::with_leased(due, leased))
}
