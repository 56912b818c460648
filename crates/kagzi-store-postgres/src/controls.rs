//! What operators set: the statements about namespaces and gates, and what makes all servers keep to them.
//!
//! A server remembers the controls of the namespaces it works for, and every commit that relied on them
//! proves that they still hold: it takes a shared lock on the namespace's name, then compares its version.
//! Whoever changes a control takes the lock exclusively. Both are the last things before the COMMIT and ride
//! in its flight, so that a namespace without gates costs no round trip, no row lock and no wait. The lock is
//! one of memory, not of a row: a row lock by every commit would rewrite the row's page every time.

use std::borrow::Cow;

use async_trait::async_trait;
use futures_util::future::{try_join, try_join_all};
use kagzi_model::{Gate, GateKey, GateScope, Mark, Name, Namespace, Timestamp};
use kagzi_store::{Changes, ControlReads, ControlRows, Depth, ListedNamespace, StoreError, gate, namespace};
use tokio_postgres::{Error, Row, types::ToSql};

use crate::{
    backend::PostgresBackend,
    reads::PostgresReads,
    row,
    session::{Bind, Session},
    write::{Columns, Sending, column, send, text, to_json},
};

kagzi_store::statements! {
/// Every statement of the controls on the writing connection; a test prepares each on a real database.
STATEMENTS:

const NAMESPACE: &str = concat!(
    "SELECT ",
    namespace!(columns),
    "
   FROM kagzi.namespaces
  WHERE namespace_id = $1"
);

// In the order of the primary key the widest come first: the empty text sorts before every name.
const GATES: &str = concat!(
    "SELECT ",
    gate!(columns),
    "
   FROM kagzi.gates
  WHERE namespace_id = $1
  ORDER BY task_queue, workflow_type"
);

// In the order of their keys: two servers that need the same gates wait for each other, and never crosswise.
const LOCK_GATES: &str = concat!(
    "SELECT ",
    gate!(qualified),
    "
   FROM unnest($1::text[], $2::text[], $3::text[]) AS wanted (namespace_id, task_queue, workflow_type)
   JOIN kagzi.gates
     ON gates.namespace_id = wanted.namespace_id
    AND gates.task_queue = wanted.task_queue
    AND gates.workflow_type = wanted.workflow_type
  ORDER BY gates.namespace_id, gates.task_queue, gates.workflow_type
    FOR UPDATE OF gates"
);

const LEASED_IN_NAMESPACE: &str = "SELECT count(*)
   FROM kagzi.runs
  WHERE namespace_id = $1
    AND lease_worker IS NOT NULL";

const LEASED_IN_QUEUE: &str = "SELECT count(*)
   FROM kagzi.runs
  WHERE namespace_id = $1
    AND task_queue = $2
    AND lease_worker IS NOT NULL";

const LEASED_OF_TYPE: &str = "SELECT count(*)
   FROM kagzi.runs
  WHERE namespace_id = $1
    AND task_queue = $2
    AND workflow_type = $3
    AND lease_worker IS NOT NULL";

// The first number is ours ("kagz" would not fit): other users of the database have other locks.
const GUARD_SHARED: &str = "SELECT pg_advisory_xact_lock_shared(461195672, hashtext(name))
   FROM unnest($1::text[]) AS name";

const GUARD_EXCLUSIVE: &str = "SELECT pg_advisory_xact_lock(461195672, hashtext(name))
   FROM unnest($1::text[]) AS name";

// Another version means that the controls changed since they were read: the division by zero ends the
// transaction, whose COMMIT is already on its way.
const GUARD_VERSIONS: &str = "SELECT 1 / (count(*) = cardinality($1))::integer
   FROM unnest($1::text[], $2::bigint[]) AS relied (namespace_id, version)
   JOIN kagzi.namespaces
     ON namespaces.namespace_id = relied.namespace_id
    AND namespaces.version = relied.version";

const INSERT_IMPLICIT_NAMESPACES: &str = concat!(
    "INSERT INTO kagzi.namespaces (",
    namespace!(inserted),
    ")
 SELECT *
   FROM unnest(",
    namespace!(arrays),
    ")
     ON CONFLICT (namespace_id) DO NOTHING"
);

const CREATE_NAMESPACES: &str = concat!(
    "INSERT INTO kagzi.namespaces (",
    namespace!(inserted),
    ")
 SELECT *
   FROM unnest(",
    namespace!(arrays),
    ")"
);

const UPDATE_NAMESPACES: &str = concat!(
    "WITH done AS (
    UPDATE kagzi.namespaces
       SET ",
    namespace!(set_new),
    "
      FROM unnest(",
    namespace!(changed_arrays),
    ", $12::bigint[])
           AS new (",
    namespace!(changed),
    ", from_version)
     WHERE namespaces.namespace_id = new.namespace_id
       AND namespaces.version = new.from_version
 RETURNING 1
)
SELECT 1 / (count(*) = cardinality($1))::integer
  FROM done"
);

const PUT_GATES: &str = concat!(
    "INSERT INTO kagzi.gates (",
    gate!(inserted),
    ")
 SELECT *
   FROM unnest(",
    gate!(arrays),
    ")
     ON CONFLICT (namespace_id, task_queue, workflow_type) DO UPDATE
    SET ",
    gate!(set_excluded)
);

const DELETE_GATES: &str = "DELETE FROM kagzi.gates
  USING unnest($1::text[], $2::text[], $3::text[]) AS gone (namespace_id, task_queue, workflow_type)
  WHERE gates.namespace_id = gone.namespace_id
    AND gates.task_queue = gone.task_queue
    AND gates.workflow_type = gone.workflow_type";
}

kagzi_store::statements! {
/// The same on the reading connections.
READ_STATEMENTS:

const NAMESPACES: &str = concat!(
    "SELECT ",
    namespace!(columns),
    "
   FROM kagzi.namespaces
  WHERE namespace_id > $1
  ORDER BY namespace_id
  LIMIT $2"
);

const DEPTHS: &str = "SELECT task_queue, workflow_type, sum(ready)::bigint, sum(waiting)::bigint, \
                      sum(leased)::bigint, min(oldest)
   FROM (
        SELECT task_queue, workflow_type, count(*) FILTER (WHERE due_at <= $2) AS ready,
               count(*) FILTER (WHERE due_at > $2) AS waiting, 0 AS leased,
               min(due_at) FILTER (WHERE due_at <= $2) AS oldest
          FROM kagzi.runs
         WHERE namespace_id = $1
           AND due_at IS NOT NULL
         GROUP BY task_queue, workflow_type
         UNION ALL
        SELECT task_queue, workflow_type, 0, 0, count(*), NULL
          FROM kagzi.runs
         WHERE namespace_id = $1
           AND lease_worker IS NOT NULL
         GROUP BY task_queue, workflow_type
        ) AS parts
  GROUP BY task_queue, workflow_type";
}

/// What the next commit must prove.
#[derive(Debug, Default)]
pub struct RequiredVersions {
    relied: Vec<(Name, u64)>,
    changed: Vec<Name>,
}

impl RequiredVersions {
    pub fn rely(&mut self, mut versions: Vec<(Name, u64)>) {
        // In the order of their names, as locks are always taken.
        versions.sort_unstable();
        self.relied = versions;
    }

    /// Notes whose controls are written.
    pub fn change(&mut self, namespaces: &Changes<Namespace>) {
        let created = namespaces.inserted.iter().chain(namespaces.updated.iter().map(|(_, row)| row));
        self.changed.extend(created.map(|row| row.name.clone()));
        self.changed.sort_unstable();
        self.changed.dedup();
    }

    pub fn clear(&mut self) {
        *self = RequiredVersions::default();
    }

    /// The statements that prove it, to be sent right before the COMMIT.
    pub fn statements<'s>(&self, session: &'s Session) -> Vec<Sending<'s>> {
        let mut sending: Vec<Sending<'s>> = Vec::new();
        let relied: Vec<(String, i64)> =
            self.relied.iter().map(|(name, version)| (name.to_string(), version.cast_signed())).collect();
        let shared: Vec<String> = relied
            .iter()
            .filter(|(name, _)| !self.changed.iter().any(|changed| **changed == **name))
            .map(|(name, _)| name.clone())
            .collect();
        let exclusive: Vec<String> = self.changed.iter().map(ToString::to_string).collect();
        if !shared.is_empty() {
            sending.push(Box::pin(async move { session.query(GUARD_SHARED, &[&shared]).await.map(drop) }));
        }
        if !exclusive.is_empty() {
            sending
                .push(Box::pin(async move { session.query(GUARD_EXCLUSIVE, &[&exclusive]).await.map(drop) }));
        }
        if !relied.is_empty() {
            sending.push(Box::pin(async move {
                let (names, versions): (Vec<String>, Vec<i64>) = relied.into_iter().unzip();
                session.query(GUARD_VERSIONS, &[&names, &versions]).await.map(drop)
            }));
        }
        sending
    }
}

/// The statements that write what changed, in order.
pub fn statements(
    session: &Session,
    namespaces: Changes<Namespace>,
    gates: Changes<Gate>,
) -> Vec<Sending<'_>> {
    let Changes { deleted, mut implicit, inserted: mut created, mut updated } = namespaces;
    debug_assert!(deleted.is_empty(), "namespaces stay");
    implicit.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    created.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    updated.sort_unstable_by(|a, b| a.1.name.cmp(&b.1.name));
    let mut shut: Vec<Gate> = gates.rows().cloned().collect();
    shut.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    let mut open: Vec<GateKey> = gates.deleted.into_iter().map(|(key, _)| key).collect();
    open.sort_unstable();
    let mut sending: Vec<Sending<'_>> = Vec::new();
    if !implicit.is_empty() {
        sending.push(Box::pin(async move {
            send(session, INSERT_IMPLICIT_NAMESPACES, namespace_columns(&implicit)).await
        }));
    }
    if !created.is_empty() {
        sending.push(Box::pin(
            async move { send(session, CREATE_NAMESPACES, namespace_columns(&created)).await },
        ));
    }
    if !updated.is_empty() {
        sending.push(Box::pin(async move {
            let (from, rows): (Vec<u64>, Vec<Namespace>) = updated.into_iter().unzip();
            let mut columns = namespace_columns(&rows);
            columns.push(column(&from, |version| version.cast_signed()));
            send(session, UPDATE_NAMESPACES, columns).await
        }));
    }
    if !shut.is_empty() {
        sending.push(Box::pin(async move { send(session, PUT_GATES, gate_columns(&shut)).await }));
    }
    if !open.is_empty() {
        sending.push(Box::pin(async move { send(session, DELETE_GATES, key_columns(&open)).await }));
    }
    sending
}

fn namespace_columns(rows: &[Namespace]) -> Columns<'_> {
    let columns: [_; namespace!(inserted_width)] = [
        column(rows, |row| &*row.name),
        column(rows, |row| text(&row.description)),
        column(rows, |row| row.disabled.as_ref().map(|mark| &*mark.by)),
        column(rows, |row| note(row.disabled.as_ref())),
        column(rows, |row| row.disabled.as_ref().map(|mark| mark.since.0)),
        column(rows, |row| to_json(&row.defaults)),
        column(rows, |row| row.retention_ms),
        column(rows, |row| row.handler_queue.as_deref()),
        column(rows, |row| row.created_at.0),
        column(rows, |row| row.updated_at.0),
        column(rows, |row| row.version.cast_signed()),
    ];
    columns.into()
}

fn gate_columns(gates: &[Gate]) -> Columns<'_> {
    let columns: [_; gate!(inserted_width)] = [
        column(gates, |gate| &*gate.key.namespace),
        column(gates, |gate| gate.key.columns().0),
        column(gates, |gate| gate.key.columns().1),
        column(gates, |gate| gate.paused.as_ref().map(|mark| &*mark.by)),
        column(gates, |gate| note(gate.paused.as_ref())),
        column(gates, |gate| gate.paused.as_ref().map(|mark| mark.since.0)),
        column(gates, |gate| gate.max_concurrent.map(i64::from)),
        column(gates, |gate| gate.updated_at.0),
    ];
    columns.into()
}

fn key_columns(keys: &[GateKey]) -> Columns<'_> {
    vec![
        column(keys, |key| &*key.namespace),
        column(keys, |key| key.columns().0),
        column(keys, |key| key.columns().1),
    ]
}

fn note(mark: Option<&Mark>) -> Option<Cow<'_, str>> {
    mark.map(|mark| text(&mark.note))
}

fn read_namespace(found: &Row) -> Result<Namespace, StoreError> {
    Ok(Namespace {
        name: row::name(found, 0)?,
        description: row::get(found, 1)?,
        disabled: read_mark(found, 2)?,
        defaults: row::json(found, 5)?,
        retention_ms: row::get(found, 6)?,
        handler_queue: row::get::<Option<&str>>(found, 7)?.map(Name::from),
        created_at: Timestamp(row::get(found, 8)?),
        updated_at: Timestamp(row::get(found, 9)?),
        version: row::get::<i64>(found, 10)?.cast_unsigned(),
    })
}

fn read_gate(found: &Row) -> Result<Gate, StoreError> {
    let limit: Option<i64> = row::get(found, 6)?;
    Ok(Gate {
        key: GateKey::from_columns(row::name(found, 0)?, row::name(found, 1)?, row::name(found, 2)?),
        paused: read_mark(found, 3)?,
        max_concurrent: limit.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX)),
        updated_at: Timestamp(row::get(found, 7)?),
    })
}

/// Reads three columns: by, note, since.
fn read_mark(found: &Row, at: usize) -> Result<Option<Mark>, StoreError> {
    let Some(by) = row::get::<Option<&str>>(found, at)? else { return Ok(None) };
    let since = Timestamp(row::get(found, at + 2)?);
    Ok(Some(Mark { by: by.into(), note: row::get(found, at + 1)?, since }))
}

async fn leased_behind(session: &Session, key: &GateKey) -> Result<u32, Error> {
    let namespace = &*key.namespace;
    let rows = match &key.scope {
        GateScope::Namespace => session.query(LEASED_IN_NAMESPACE, &[&namespace]).await?,
        GateScope::Queue(queue) => session.query(LEASED_IN_QUEUE, &[&namespace, &&**queue]).await?,
        GateScope::Type { task_queue, workflow_type } => {
            let bind: Bind<'_> = &[&namespace, &&**task_queue, &&**workflow_type];
            session.query(LEASED_OF_TYPE, bind).await?
        }
    };
    let counted: i64 = rows.first().map_or(Ok(0), |found| found.try_get(0))?;
    Ok(u32::try_from(counted).unwrap_or(u32::MAX))
}

impl ControlRows for PostgresBackend {
    async fn load_controls(
        &mut self,
        namespace: &Name,
    ) -> Result<Option<(Namespace, Vec<Gate>)>, StoreError> {
        let session = self.session()?;
        let name = &**namespace;
        let bind: Bind<'_> = &[&name];
        // The row first: gates that changed after it make its version too old, which the commit notices.
        let both = try_join(session.query(NAMESPACE, bind), session.query(GATES, bind));
        let (found, gates) = self.flight(&session, both).await?;
        let Some(found) = found.first() else { return Ok(None) };
        let gates = gates.iter().map(read_gate).collect::<Result<_, _>>()?;
        Ok(Some((read_namespace(found)?, gates)))
    }

    async fn leased_behind(&mut self, key: &GateKey) -> Result<u32, StoreError> {
        let session = self.session()?;
        self.flight(&session, leased_behind(&session, key)).await
    }

    async fn lock_gates(&mut self, keys: &[GateKey]) -> Result<Vec<(Gate, u32)>, StoreError> {
        let session = self.session()?;
        let lock = async {
            let columns = key_columns(keys);
            let bind: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|column| &**column as _).collect();
            session.query(LOCK_GATES, &bind).await
        };
        // Sent behind the lock, and each statement sees what was committed when it begins: every lease by
        // whoever held the gates before.
        let counts = try_join_all(keys.iter().map(|key| leased_behind(&session, key)));
        let (gates, counts) = self.flight(&session, try_join(lock, counts)).await?;
        let gates = gates.iter().map(read_gate).collect::<Result<Vec<_>, _>>()?;
        let counted = |gate: Gate| {
            let at = keys.iter().position(|key| *key == gate.key)?;
            Some((gate, counts[at]))
        };
        Ok(gates.into_iter().filter_map(counted).collect())
    }

    fn require_versions(&mut self, versions: Vec<(Name, u64)>) {
        self.required_versions_mut().rely(versions);
    }
}

#[async_trait]
impl ControlReads for PostgresReads {
    async fn namespace(&self, name: &Name) -> Result<Option<Namespace>, StoreError> {
        let rows = self.query(NAMESPACE, &[&&**name]).await?;
        rows.first().map(read_namespace).transpose()
    }

    async fn namespaces(
        &self,
        after: Option<&Name>,
        limit: usize,
    ) -> Result<Vec<ListedNamespace>, StoreError> {
        let after = after.map_or("", |after| after);
        let rows = self.query(NAMESPACES, &[&after, &(limit as i64)]).await?;
        rows.iter().map(|found| ListedNamespace::of(row::name(found, 0)?, read_namespace(found))).collect()
    }

    async fn gates(&self, namespace: &Name) -> Result<Vec<Gate>, StoreError> {
        let rows = self.query(GATES, &[&&**namespace]).await?;
        rows.iter().map(read_gate).collect()
    }

    async fn depths(&self, namespace: &Name, now: Timestamp) -> Result<Vec<Depth>, StoreError> {
        let rows = self.query(DEPTHS, &[&&**namespace, &now.0]).await?;
        let count = |found: &Row, at| row::get::<i64>(found, at).map(i64::cast_unsigned);
        let read = |found: &Row| {
            Ok(Depth {
                task_queue: row::name(found, 0)?,
                workflow_type: row::name(found, 1)?,
                ready: count(found, 2)?,
                waiting: count(found, 3)?,
                leased: count(found, 4)?,
                oldest_ready_at: row::get::<Option<i64>>(found, 5)?.map(Timestamp),
            })
        };
        let mut depths = rows.iter().map(read).collect::<Result<Vec<Depth>, StoreError>>()?;
        // By bytes, whatever the database's collation is.
        depths.sort_by(|a, b| (&a.task_queue, &a.workflow_type).cmp(&(&b.task_queue, &b.workflow_type)));
        Ok(depths)
    }
}
