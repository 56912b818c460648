//! The writing side: one connection, one transaction at a time, as few round trips as the turn allows.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::{join, join_all};
use kagzi_store::{Backend, StoreError, WriteSet};
use tokio_postgres::{Config, Error, Row};
use tokio_util::sync::DropGuard;
use tracing::{info, warn};
use uuid::Uuid;

use crate::{
    WRITE_STATEMENTS,
    controls::RequiredVersions,
    error::from_postgres,
    options::PostgresOptions,
    session::{Backoff, Bind, Purpose, Session, settings, too_slow},
    write,
};

kagzi_store::statements! {
/// The statement of no table; a test prepares it on a real database.
STATEMENTS:

// Any statement will do: the transaction that it begins must be allowed to write.
const PROBE: &str = "SELECT 1";
}

/// Statements in one flight: `join_all` sends that many in order. A turn has at most three write sets.
const FLIGHT_LEN_MAX: usize = 30;

/// The connection that writes. It is made anew when it is lost, at the next batch.
pub struct PostgresBackend {
    config: Config,
    options: PostgresOptions,
    /// Names this server in the rows of the workers that stand by here.
    server: Uuid,
    begin_sql: String,
    session: Option<Arc<Session>>,
    /// BEGIN was sent. It waits for the first statement of the transaction, and an empty one sends nothing at
    /// all.
    begun: bool,
    /// Rows that are written with the next statement that has an answer, or with the commit.
    held_back: Vec<WriteSet>,
    /// What the commit proves about the rules.
    required_versions: RequiredVersions,
    backoff: Backoff,
    round_trips: u64,
    connect_after: Option<Instant>,
    /// Ends the other tasks of the store when the lane ends.
    _stop: DropGuard,
}

impl PostgresBackend {
    pub async fn connect(
        config: Config,
        options: PostgresOptions,
        server: Uuid,
        stop: DropGuard,
    ) -> Result<Self, StoreError> {
        let local =
            if options.notify { String::new() } else { settings("SET LOCAL", &options, Purpose::Write) };
        let mut backend = PostgresBackend {
            begin_sql: format!("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {local}"),
            config,
            options,
            server,
            session: None,
            begun: false,
            held_back: Vec::new(),
            required_versions: RequiredVersions::default(),
            backoff: Backoff::default(),
            round_trips: 0,
            connect_after: None,
            _stop: stop,
        };
        backend.session = Some(backend.open().await?);
        Ok(backend)
    }

    async fn open(&self) -> Result<Arc<Session>, StoreError> {
        let session = Session::connect(&self.config, &self.options, Purpose::Write).await?;
        let statements = WRITE_STATEMENTS.concat();
        let preparing = session.prepare_all(statements.iter());
        let prepared = tokio::time::timeout(self.options.connect_timeout, preparing).await;
        match prepared.unwrap_or_else(|_| Err(too_slow("preparing the statements"))) {
            Ok(()) => Ok(Arc::new(session)),
            Err(error) => {
                session.abandon();
                Err(error)
            }
        }
    }

    /// Connects again if need be; between attempts it fails at once, so that nobody queues for a dead
    /// database.
    async fn reconnect(&mut self) -> Result<(), StoreError> {
        if self.session.as_ref().is_some_and(|session| !session.closed()) {
            return Ok(());
        }
        self.session = None;
        if self.connect_after.is_some_and(|at| Instant::now() < at) {
            return Err(StoreError::Unavailable("the database is away, trying again soon".into()));
        }
        match self.open().await {
            Ok(session) => {
                info!("connected to the database again");
                self.backoff.reset();
                self.connect_after = None;
                self.session = Some(session);
                Ok(())
            }
            Err(error) => {
                self.connect_after = Some(Instant::now() + self.backoff.next());
                Err(error)
            }
        }
    }

    pub(crate) fn required_versions_mut(&mut self) -> &mut RequiredVersions {
        &mut self.required_versions
    }

    /// This server, as the rows of the workers that stand by here name it.
    pub(crate) fn server(&self) -> Uuid {
        self.server
    }

    pub(crate) fn session(&self) -> Result<Arc<Session>, StoreError> {
        self.session.clone().ok_or_else(|| StoreError::Unavailable("the database is away".into()))
    }

    /// Sends BEGIN, the rows held back, and `last`, without waiting in between, and then hears all answers.
    pub(crate) async fn flight<T>(
        &mut self,
        session: &Session,
        last: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, StoreError> {
        self.flight_with(session, Vec::new(), last).await
    }

    /// The same, with statements that come after the rows.
    async fn flight_with<T>(
        &mut self,
        session: &Session,
        after: Vec<write::Sending<'_>>,
        last: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, StoreError> {
        let mut ahead = Vec::new();
        if !std::mem::replace(&mut self.begun, true) {
            let begin: futures_util::future::BoxFuture<'_, _> = Box::pin(session.execute(&self.begin_sql));
            ahead.push(begin);
        }
        for set in self.held_back.drain(..) {
            ahead.extend(write::statements(session, self.server, set));
        }
        ahead.extend(after);
        debug_assert!(ahead.len() < FLIGHT_LEN_MAX, "a longer flight would be sent out of order");
        self.round_trips += 1;
        // Twice the statement's own timeout: the server is the first to give up, and says why.
        let patience = self.options.statement_timeout * 2 + Duration::from_secs(1);
        let answers = tokio::time::timeout(patience, join(join_all(ahead), last)).await;
        let Ok((ahead, last)) = answers else {
            self.drop_session();
            return Err(too_slow("a batch"));
        };
        // The first error is the cause; those behind it only say that the transaction has ended.
        let first = ahead.into_iter().find_map(Result::err);
        let result = match (first, last) {
            (Some(error), _) | (None, Err(error)) => Err(error),
            (None, Ok(answer)) => Ok(answer),
        };
        result.map_err(|error| {
            let error = from_postgres(error);
            if matches!(error, StoreError::Unavailable(_)) {
                // Perhaps a failover left this session on a replica: only a new one finds out.
                self.drop_session();
            }
            error
        })
    }

    fn drop_session(&mut self) {
        self.begun = false;
        if let Some(session) = self.session.take() {
            warn!("the database connection is given up");
            session.abandon();
        }
    }

    pub(crate) async fn query(&mut self, sql: &str, bind: Bind<'_>) -> Result<Vec<Row>, StoreError> {
        let session = self.session()?;
        self.flight(&session, session.query(sql, bind)).await
    }
}

impl Backend for PostgresBackend {
    async fn begin(&mut self) -> Result<(), StoreError> {
        self.begun = false;
        self.held_back.clear();
        self.required_versions.clear();
        self.reconnect().await
    }

    async fn commit(&mut self) -> Result<(), StoreError> {
        if !self.begun && self.held_back.is_empty() {
            return Ok(());
        }
        let session = self.session()?;
        let proofs = std::mem::take(&mut self.required_versions).statements(&session);
        self.flight_with(&session, proofs, session.execute("COMMIT")).await?;
        self.begun = false;
        Ok(())
    }

    fn round_trips(&self) -> u64 {
        self.round_trips
    }

    async fn probe(&mut self) -> Result<(), StoreError> {
        self.query(PROBE, &[]).await.map(drop)
    }

    async fn rollback(&mut self) {
        self.held_back.clear();
        if !std::mem::replace(&mut self.begun, false) {
            return;
        }
        let Ok(session) = self.session() else { return };
        let ended = tokio::time::timeout(self.options.statement_timeout, session.execute("ROLLBACK")).await;
        if !matches!(ended, Ok(Ok(()))) {
            // Its transaction ends with it.
            self.drop_session();
        }
    }

    async fn write(&mut self, set: WriteSet) -> Result<(), StoreError> {
        self.required_versions.change(&set.namespaces);
        self.held_back.push(set);
        Ok(())
    }
}
