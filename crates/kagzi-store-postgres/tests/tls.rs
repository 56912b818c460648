//! TLS to the database, against a real one that takes nothing else.
#![cfg(feature = "tls")]

mod stage;

use std::sync::Arc;

use kagzi_store::{Silent, SystemClock};
use kagzi_store_postgres::{PostgresOptions, PostgresStore, fixture};
use stage::Server;

async fn refusal(url: &str) -> String {
    let clock = Arc::new(SystemClock::new());
    let opened = PostgresStore::open(url, PostgresOptions::default(), clock, Arc::new(Silent)).await;
    opened.err().expect("refused").to_string()
}

#[tokio::test]
async fn a_database_that_takes_only_tls_is_reached_verified_or_not_at_all() {
    let (database, authority) = fixture::Server::tls();
    let (url, authority) = (database.url(), authority.display().to_string());

    for query in ["sslmode=require".to_owned(), format!("sslmode=verify-full&sslrootcert={authority}")] {
        let server = Server::open(&format!("{url}?{query}"), PostgresOptions::default()).await;
        server.start("charge").await;
    }

    let plain = refusal(&url).await;
    let unknown = refusal(&format!("{url}?sslmode=verify-full")).await;
    let by_address = url.replace("localhost", "127.0.0.1");
    let elsewhere = refusal(&format!("{by_address}?sslrootcert={authority}")).await;
    assert!(plain.contains("no encryption") || plain.contains("pg_hba.conf"), "{plain}");
    assert!(unknown.contains("certificate") || unknown.contains("UnknownIssuer"), "{unknown}");
    assert!(elsewhere.contains("certificate") || elsewhere.contains("not valid for"), "{elsewhere}");
}
