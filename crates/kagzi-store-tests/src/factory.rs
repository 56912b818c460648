//! How the suite gets its stores.

use std::sync::Arc;

use async_trait::async_trait;
use kagzi_store::{Clock, MemoryStore, Observer, Store};

/// Opens stores over one place: a file, a schema, a map.
///
/// - Every `open` of one factory sees the same data if the store is durable. Only one store of a factory is
///   open at a time: the suite closes it before it opens the next.
/// - The place need not be empty; each check uses a namespace of its own. But sweeps are not scoped to a
///   namespace, so checks that run at the same time must not share a database.
/// - The store takes its time from the given clock, which stands still unless a check moves it.
#[async_trait]
pub trait StoreFactory: Send + Sync + 'static {
    async fn open(&self, clock: Arc<dyn Clock>, observer: Arc<dyn Observer>) -> Arc<Store>;

    /// Executes a statement on the database itself, while no store of the factory is open.
    async fn execute(&self, sql: &str) {
        panic!("there is no database that could execute: {sql}");
    }
}

/// The in-memory reference store.
pub struct MemoryFactory;

#[async_trait]
impl StoreFactory for MemoryFactory {
    async fn open(&self, clock: Arc<dyn Clock>, observer: Arc<dyn Observer>) -> Arc<Store> {
        Arc::new(MemoryStore::open(clock, observer))
    }
}

/// A statement of these tests in the words of PostgreSQL: its schema, and bytes as it writes them.
pub fn in_postgres(sql: &str) -> String {
    let mut parts = sql.split("x'");
    let mut text = format!("SET search_path = kagzi; {}", parts.next().unwrap_or_default());
    for part in parts {
        let (bytes, rest) = part.split_once('\'').expect("bytes end with a quote");
        text += &format!("'\\x{bytes}'::bytea{rest}");
    }
    text
}
