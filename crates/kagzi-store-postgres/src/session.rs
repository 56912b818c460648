//! One connection: its settings, its prepared statements, its end.

use std::{collections::HashMap, time::Duration};

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
        let unnamed = options.pooler.then(|| Unnamed::new(purpose == Purpose::Write));
        let session = Session { client, task, statements: Mutex::default(), unnamed };
        let set_up = tokio::time::timeout(options.connect_timeout, session.set_up(options, purpose));
        set_up.await.map_err(|_| too_slow("setting up a connection"))??;
        Ok(session)
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
        let preparing = statements.map(|(_, sql)| self.statement(sql));
        let prepared = futures_util::future::join_all(preparing).await;
        prepared.into_iter().try_for_each(|prepared| prepared.map(drop)).map_err(from_postgres)
    }

    /// Runs a statement, prepared on first use.
    pub async fn query(&self, sql: &str, bind: Bind<'_>) -> Result<Vec<Row>, Error> {
        if let Some(unnamed) = &self.unnamed {
            return unnamed.query(&self.client, sql, bind).await;
        }
        let statement = self.statement(sql).await?;
        self.client.query(&statement, bind).await
    }

    /// Runs a statement that is not worth keeping. Its types are named, so it takes one round trip, also behind a
    /// pooler.
    pub async fn query_once(
        &self,
        sql: &str,
        bind: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, Error> {
        self.client.query_typed(sql, bind).await
    }

    /// Runs plain text without values.
    pub async fn execute(&self, sql: &str) -> Result<(), Error> {
        self.client.batch_execute(sql).await
    }

    pub fn closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Ends the connection at once, whatever is in flight: it is of no more use.
    pub fn abandon(&self) {
        self.task.abort();
    }

    async fn statement(&self, sql: &str) -> Result<Statement, Error> {
        if let Some(statement) = self.statements.lock().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.lock().insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
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
            // second line, a plan made while the tables were small would read them whole for the first minutes.
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

/// Waits longer after each failure: 100 ms, doubled up to 1 s. Not more: a server that comes back later than its
/// neighbours does not hear its workers for so long, and the neighbours would declare them lost.
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
