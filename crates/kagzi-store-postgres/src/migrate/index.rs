//! An index on a table that may be large: no writer waits while it is built.

use kagzi_store::StoreError;

use super::{holds, record};
use crate::{error::from_postgres, session::Session};

/// An index to be made.
pub struct Index {
    pub name: &'static str,
    /// The table, the columns and the condition.
    pub on: &'static str,
}

// The lock of TRY_LOCK, held by the session: building beside the writers is no transaction.
const TRY_SESSION_LOCK: &str = "SELECT pg_try_advisory_lock(461195672169)";
const SESSION_UNLOCK: &str = "SELECT pg_advisory_unlock(461195672169)";

impl Index {
    fn table(&self) -> &'static str {
        self.on.split_whitespace().next().expect("the table comes first")
    }

    /// Whether a transaction is the place for it: the table is empty, as it is for everybody who starts anew,
    /// or the index is there already.
    pub async fn quick(&self, session: &Session) -> Result<bool, StoreError> {
        let empty = format!("SELECT NOT EXISTS (SELECT FROM {})", self.table());
        Ok(holds(session, &empty).await? || self.is_valid(session).await?)
    }

    /// Builds it within the transaction.
    pub async fn build(&self, session: &Session) -> Result<(), StoreError> {
        if self.is_valid(session).await? {
            return Ok(());
        }
        // A ruin of an interrupted attempt has the name already.
        let sql = format!("DROP INDEX IF EXISTS kagzi.{0}; CREATE INDEX {0} ON {1}", self.name, self.on);
        session.execute(&sql).await.map_err(from_postgres)
    }

    /// Builds it beside readers and writers. False when another server is at it.
    pub async fn build_beside(&self, session: &Session, number: usize) -> Result<bool, StoreError> {
        if session.pooled() {
            return Err(StoreError::Unavailable(format!(
                "the index {} is to be built, which no pooler in transaction mode can do; start one server \
                 once with a \
                 direct URL, without pgbouncer=true and with notifications",
                self.name
            )));
        }
        if !holds(session, TRY_SESSION_LOCK).await? {
            return Ok(false);
        }
        let built = self.build_locked(session, number).await;
        // With a lost connection the lock is gone too.
        let unlocked = holds(session, SESSION_UNLOCK).await;
        built?;
        match unlocked? {
            true => Ok(true),
            false => Err(StoreError::Unavailable(
                "the lock of the migration was not held by this connection; a pooler seems to stand in \
                 between"
                    .into(),
            )),
        }
    }

    async fn build_locked(&self, session: &Session, number: usize) -> Result<(), StoreError> {
        // As long as it takes: nobody waits for it but us.
        session.execute("SET statement_timeout = 0; SET lock_timeout = 0").await.map_err(from_postgres)?;
        if !self.is_valid(session).await? {
            // What an interrupted attempt left behind is kept up to date by every writer and used by no
            // reader.
            let drop = format!("DROP INDEX CONCURRENTLY IF EXISTS kagzi.{}", self.name);
            session.execute(&drop).await.map_err(from_postgres)?;
            let create = format!("CREATE INDEX CONCURRENTLY {} ON {}", self.name, self.on);
            session.execute(&create).await.map_err(from_postgres)?;
        }
        // Somebody may have been quicker between our look and the lock.
        let noted = format!("{} ON CONFLICT DO NOTHING", record(number));
        session.execute(&noted).await.map_err(from_postgres)
    }

    async fn is_valid(&self, session: &Session) -> Result<bool, StoreError> {
        let sql =
            format!("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('kagzi.{}')", self.name);
        holds(session, &sql).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrate::TRY_LOCK;

    #[test]
    fn the_session_holds_the_lock_that_transactions_ask_for() {
        let number = |sql: &str| sql.split(['(', ')']).nth(1).unwrap().to_owned();

        assert_eq!(number(TRY_SESSION_LOCK), number(TRY_LOCK));
        assert_eq!(number(SESSION_UNLOCK), number(TRY_LOCK));
    }
}
