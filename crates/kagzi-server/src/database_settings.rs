//! How to talk to a database that is not a file.

use std::time::Duration;

/// Settings of the connection to PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseSettings {
    /// Servers ring each other with NOTIFY.
    pub notify: bool,
    /// How often to look for other servers' work unasked. None = 5 s with `notify`, 1 s without.
    pub poll_interval: Option<Duration>,
    /// The longest a statement, or a wait for a lock, may take.
    pub statement_timeout: Duration,
    /// The longest that connecting may take.
    pub connect_timeout: Duration,
    /// Connections for reading.
    pub readers: usize,
}

impl Default for DatabaseSettings {
    fn default() -> Self {
        DatabaseSettings {
            notify: true,
            poll_interval: None,
            statement_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            readers: 4,
        }
    }
}

#[cfg(feature = "postgres")]
impl DatabaseSettings {
    /// As the store calls them.
    pub fn postgres(&self) -> kagzi_store_postgres::PostgresOptions {
        let ms = |interval: Duration| i64::try_from(interval.as_millis()).unwrap_or(i64::MAX);
        kagzi_store_postgres::PostgresOptions {
            notify: self.notify,
            poll_ms: self.poll_interval.map(ms),
            statement_timeout: self.statement_timeout,
            connect_timeout: self.connect_timeout,
            readers: self.readers,
            // A pooler belongs to the address, so the URL names it.
            ..kagzi_store_postgres::PostgresOptions::default()
        }
    }
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_stores_own() {
        let ours = format!("{:?}", DatabaseSettings::default().postgres());

        assert_eq!(ours, format!("{:?}", kagzi_store_postgres::PostgresOptions::default()));
    }
}
