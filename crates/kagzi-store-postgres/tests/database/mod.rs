//! A database of its own for each test, opened as the suite asks.

use std::sync::Arc;

use async_trait::async_trait;
use kagzi_store::{Clock, Observer, Store};
use kagzi_store_postgres::{PostgresOptions, PostgresStore, fixture};
use kagzi_store_tests::StoreFactory;

pub struct Database {
    url: String,
}

impl Database {
    pub async fn fresh() -> Self {
        Database { url: fixture::database().await }
    }

    #[allow(dead_code, reason = "most tests ask the store alone")]
    pub fn url(&self) -> &str {
        &self.url
    }
}

#[async_trait]
impl StoreFactory for Database {
    async fn open(&self, clock: Arc<dyn Clock>, observer: Arc<dyn Observer>) -> Arc<Store> {
        let options = PostgresOptions::default();
        Arc::new(PostgresStore::open(&self.url, options, clock, observer).await.expect("the database opens"))
    }

    async fn execute(&self, sql: &str) {
        fixture::sql(&self.url, &kagzi_store_tests::in_postgres(sql)).await;
    }
}
