//! A few connections for reading.

use std::{future::Future, time::Duration};

use kagzi_store::StoreError;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::{sync::Semaphore, time::timeout};
use tokio_postgres::Config;

use crate::{
    options::PostgresOptions,
    session::{Purpose, Session, too_slow},
};

/// Readers, connected when needed. A reader serves one read at a time, so that a slow one holds up nobody.
pub struct ReadPool {
    config: Config,
    options: PostgresOptions,
    idle: Mutex<Vec<Arc<Session>>>,
    places: Semaphore,
}

impl ReadPool {
    pub fn new(config: Config, options: PostgresOptions) -> Self {
        let places = Semaphore::new(options.readers.max(1));
        ReadPool { config, options, idle: Mutex::default(), places }
    }

    /// Runs a read; once more on a new connection when the old one turns out to be lost.
    pub async fn read<T, F: Future<Output = Result<T, StoreError>>>(
        &self,
        read: impl Fn(Arc<Session>) -> F,
    ) -> Result<T, StoreError> {
        let patience = self.options.statement_timeout;
        let place =
            timeout(patience, self.places.acquire()).await.map_err(|_| too_slow("waiting to read"))?;
        let _place = place.expect("the pool is never closed");
        let kept = self.idle.lock().pop().filter(|session| !session.closed());
        let reused = kept.is_some();
        match self.attempt(kept, &read).await {
            Err(StoreError::Unavailable(_)) if reused => self.attempt(None, &read).await,
            result => result,
        }
    }

    async fn attempt<T, F: Future<Output = Result<T, StoreError>>>(
        &self,
        session: Option<Arc<Session>>,
        read: impl Fn(Arc<Session>) -> F,
    ) -> Result<T, StoreError> {
        let session = match session {
            Some(session) => session,
            None => Arc::new(Session::connect(&self.config, &self.options, Purpose::Read).await?),
        };
        // A read that is given up takes its connection with it: what it left in flight disturbs nobody.
        // The database is the first to give up, and says why; what it still did for us it does no longer.
        let patience = self.options.statement_timeout + Duration::from_secs(1);
        match timeout(patience, read(session.clone())).await {
            Ok(Err(StoreError::Unavailable(why))) => {
                session.abandon();
                Err(StoreError::Unavailable(why))
            }
            Ok(result) => {
                self.idle.lock().push(session);
                result
            }
            Err(_) => {
                session.abandon();
                Err(too_slow("a read"))
            }
        }
    }
}
