//! Behind PgBouncer in transaction mode every claim of the suite holds, and two servers work together.

mod stage;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use kagzi_store::{Clock, Observer, Silent, Store, SystemClock};
use kagzi_store_postgres::{PostgresOptions, PostgresStore, bouncer, fixture};
use kagzi_store_tests::StoreFactory;
use stage::{Server, complete, next, record};

struct Pooled {
    url: String,
    direct: String,
}

impl Pooled {
    async fn fresh() -> Self {
        let (url, direct) = bouncer::database().await;
        Pooled { url, direct }
    }
}

#[async_trait]
impl StoreFactory for Pooled {
    async fn open(&self, clock: Arc<dyn Clock>, observer: Arc<dyn Observer>) -> Arc<Store> {
        let options = PostgresOptions::default();
        Arc::new(PostgresStore::open(&self.url, options, clock, observer).await.expect("the database opens"))
    }

    async fn execute(&self, sql: &str) {
        fixture::sql(&self.direct, &kagzi_store_tests::in_postgres(sql)).await;
    }
}

kagzi_store_tests::conformance!(Pooled::fresh().await);
kagzi_store_tests::durability!(Pooled::fresh().await);

#[tokio::test]
async fn two_servers_find_each_others_work_by_polling() {
    let (url, direct) = bouncer::database().await;
    let options = PostgresOptions { poll_ms: Some(100), ..PostgresOptions::default() };
    let (one, two) = (Server::open(&url, options.clone()).await, Server::open(&url, options).await);
    let worker = two.register("charge", 4).await;
    let mut assignments = two.stand_by(worker, "charge").await;

    for _ in 0..50 {
        one.start("charge").await;
    }
    for _ in 0..50 {
        let lease = next(&mut assignments, Duration::from_secs(10)).await.lease();
        one.apply(record(lease.clone(), "pay", 0)).await.unwrap();
        two.apply(complete(lease)).await.unwrap();
    }

    let unfinished = "SELECT count(*) FROM kagzi.runs WHERE status <> 4";
    assert_eq!(fixture::sql(&direct, unfinished).await, ["0"]);
    let listening = "SELECT count(*) FROM pg_stat_activity WHERE query ILIKE 'LISTEN%'
                        AND datname = current_database()";
    assert_eq!(fixture::sql(&direct, listening).await, ["0"]);
}

#[tokio::test]
async fn a_server_that_was_not_told_of_the_pooler_says_what_to_do() {
    let (url, _) = bouncer::database().await;
    let untold = url.replace("?pgbouncer=true", "?notify=off");

    let open = || {
        let clock = Arc::new(SystemClock::new());
        PostgresStore::open(&untold, PostgresOptions::default(), clock, Arc::new(Silent))
    };
    let (one, two) = (open().await.unwrap(), open().await.unwrap());

    // Two that write at once are given each other's connections before long.
    let mut said = String::new();
    for _ in 0..200 {
        let start = || vec![stage::start("charge")];
        let (first, second) = tokio::join!(one.apply(start()), two.apply(start()));
        if let Some(error) = first.err().or(second.err()) {
            said = error.to_string();
            break;
        }
    }

    assert!(said.contains("?pgbouncer=true"), "{said}");
}
