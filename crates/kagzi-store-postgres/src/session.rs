//! One connection: its settings, its prepared statements, its end.

use std::{collections::HashMap, future::Future, time::Duration};

use futures_util::future::{join_all, join3};
use kagzi_store::StoreError;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio_postgres::{
    Client, Config, Error, Row, Statement,
    types::{ToSql, Type},
};
use tracing::debug;

use crate::{error::from_postgres, options::PostgresOptions, unnamed::Unnamed, wire};

/// Values that a statement binds.
pub type Bind<'a> = &'a [&'a (dyn ToSql + Sync)];

/// What a session is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Write,
    Read,
    /// Hints only: a lost one is not missed, so its commits need not wait for the disk.
    Ring,
}

/// A connection with its statements.
pub struct Session {
    client: Client,
    task: JoinHandle<()>,
    statements: Mutex<HashMap<String, Statement>>,
    /// Behind a pooler, instead of prepared statements.
    unnamed: Option<Unnamed>,
    /// Where a session keeps no settings, a transaction that has them is begun by this.
    begin: Option<String>,
    purpose: Purpose,
}

impl Session {
    /// Connects. For writing, a read replica is refused.
    pub async fn connect(
        config: &Config,
        options: &PostgresOptions,
        purpose: Purpose,
    ) -> Result<Self, StoreError> {
        let (client, wire) = wire::connect(config, options).await?;
        let task = tokio::spawn(async move {
            if let Err(error) = wire.drive().await {
                debug!(%error, "a database connection ended");
            }
        });
        let begin = (!options.notify).then(|| format!("BEGIN; {}", settings("SET LOCAL", options, purpose)));
        let unnamed = options.pooler.then(|| Unnamed::new(purpose == Purpose::Write, begin.clone()));
        let session = Session { client, task, statements: Mutex::default(), unnamed, begin, purpose };
        let set_up = tokio::time::timeout(options.connect_timeout, session.set_up(options, purpose));
        match set_up.await.unwrap_or_else(|_| Err(too_slow("setting up a connection"))) {
            Ok(()) => Ok(session),
            Err(error) => {
                session.abandon();
                Err(error)
            }
        }
    }

    async fn set_up(&self, options: &PostgresOptions, purpose: Purpose) -> Result<(), StoreError> {
        if purpose == Purpose::Write {
            let standby = self.client.query_typed("SELECT pg_is_in_recovery()", &[]).await;
            if standby.map_err(from_postgres)?[0].get(0) {
                let why = "this database is a read replica; point the URL at the primary, or list all hosts";
                return Err(StoreError::Unavailable(why.into()));
            }
            // Not a replica, and yet nothing can be written: a primary that an operator has closed.
            let closed = self.client.query_typed("SHOW default_transaction_read_only", &[]).await;
            if closed.map_err(from_postgres)?[0].get::<_, &str>(0) == "on" {
                let why =
                    "this database takes no writes (default_transaction_read_only is on); ask its operator";
                return Err(StoreError::Unavailable(why.into()));
            }
        }
        if options.notify {
            self.execute(&settings("SET", options, purpose)).await.map_err(from_postgres)?;
        }
        Ok(())
    }

    /// Prepares statements in one flight, so that later ones can be sent without waiting for a preparation.
    pub async fn prepare_all<'s>(
        &self,
        statements: impl Iterator<Item = &'s (&'s str, &'s str)>,
    ) -> Result<(), StoreError> {
        if let Some(unnamed) = &self.unnamed {
            let statements: Vec<&str> = statements.map(|(_, sql)| *sql).collect();
            return unnamed.learn(&self.client, &statements).await.map_err(from_postgres);
        }
        let preparing = join_all(statements.map(|(_, sql)| self.prepare(sql)));
        let prepared = within(&self.client, self.begin.as_deref(), async { Ok(preparing.await) }).await;
        let mut prepared = prepared.map_err(from_postgres)?.into_iter();
        prepared.try_for_each(|prepared| prepared.map(drop)).map_err(from_postgres)
    }

    /// Runs a statement, prepared on first use.
    pub async fn query(&self, sql: &str, bind: Bind<'_>) -> Result<Vec<Row>, Error> {
        if let Some(unnamed) = &self.unnamed {
            return Box::pin(unnamed.query(&self.client, sql, bind)).await;
        }
        // Whoever writes has prepared everything before its transaction.
        let begin = self.begin_of_its_own();
        let known = self.statements.lock().get(sql).cloned();
        let statement = match known {
            Some(statement) => statement,
            None => Box::pin(within(&self.client, begin, self.prepare(sql))).await?,
        };
        within(&self.client, begin, self.client.query(&statement, bind)).await
    }

    /// Runs a statement that is not worth keeping. Its types are named, so it takes one round trip, also
    /// behind a pooler.
    pub async fn query_once(
        &self,
        sql: &str,
        bind: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, Error> {
        if let Some(unnamed) = &self.unnamed {
            return Box::pin(unnamed.query_typed(&self.client, sql, bind)).await;
        }
        within(&self.client, self.begin_of_its_own(), self.client.query_typed(sql, bind)).await
    }

    /// Begins a transaction for one statement. Whoever writes is within a transaction already.
    fn begin_of_its_own(&self) -> Option<&str> {
        self.begin.as_deref().filter(|_| self.purpose != Purpose::Write)
    }

    /// Runs plain text without values.
    pub async fn execute(&self, sql: &str) -> Result<(), Error> {
        self.client.batch_execute(sql).await
    }

    /// A pooler in transaction mode stands in between, or may: the session keeps nothing from one transaction
    /// to the next.
    pub fn pooled(&self) -> bool {
        self.begin.is_some()
    }

    pub fn closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Ends the connection at once, whatever is in flight: it is of no more use. One that is only dropped
    /// hears all answers first, and the database goes on with what was sent.
    pub fn abandon(&self) {
        self.task.abort();
    }

    async fn prepare(&self, sql: &str) -> Result<Statement, Error> {
        let statement = self.client.prepare(sql).await?;
        self.statements.lock().insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

/// Sends something, in a transaction of its own if `begin` begins one, without waiting in between.
pub async fn within<T>(
    client: &Client,
    begin: Option<&str>,
    query: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let Some(begin) = begin else { return query.await };
    // In boxes, here and above: rare, and their futures would be part of every other one's.
    let flight = join3(client.batch_execute(begin), query, client.batch_execute("COMMIT"));
    let (begun, answer, ended) = Box::pin(flight).await;
    begun?;
    let answer = answer?;
    ended.map(|()| answer)
}

/// The settings of a session (`SET`) or, behind a pooler, of a transaction (`SET LOCAL`).
pub fn settings(set: &str, options: &PostgresOptions, purpose: Purpose) -> String {
    let timeout_ms = options.statement_timeout.as_millis();
    let mut sql = format!("{set} statement_timeout = {timeout_ms};");
    match purpose {
        Purpose::Write => {
            // A server that stops in the middle of a batch must not hold its locks for ever.
            sql += &format!(" {set} idle_in_transaction_session_timeout = {};", timeout_ms * 2);
            // An answered command survives a power cut, whatever the database's default is.
            sql += &format!(" {set} synchronous_commit = on;");
            // Plan once: every statement of the lane is a look-up by index, whatever its values. Without the
            // second line, a plan made while the tables were small would read them whole for the first
            // minutes.
            sql += &format!(" {set} plan_cache_mode = force_generic_plan;");
            sql += &format!(" {set} enable_seqscan = off;");
        }
        Purpose::Read => {}
        Purpose::Ring => sql += &format!(" {set} synchronous_commit = off;"),
    }
    sql
}

/// The error for something that took longer than it may.
pub fn too_slow(what: &str) -> StoreError {
    StoreError::Unavailable(format!("{what} took too long"))
}

/// Waits longer after each failure: 100 ms, doubled up to 1 s. Not more: a server that comes back later than
/// its neighbours does not hear its workers for so long, and the neighbours would declare them lost.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// How long to wait after one more failure.
    pub fn next(&mut self) -> Duration {
        let delay = Duration::from_millis(100) * 2u32.pow(self.failures.min(4));
        self.failures += 1;
        delay.min(Duration::from_secs(1))
    }

    /// It worked.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}
