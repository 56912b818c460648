//! Roles as docs/postgres.md gives them: an owner that migrates, and a server that may not.

mod stage;

use std::{sync::Arc, time::Duration};

use kagzi_store::{Silent, SystemClock};
use kagzi_store_postgres::{PostgresOptions, PostgresStore, fixture};
use stage::{Server, complete, next};

/// The database with a schema that belongs to one role, and a URL as the other.
async fn two_roles() -> (String, String) {
    let admin = fixture::database().await;
    let number = uuid::Uuid::new_v4().simple().to_string();
    let (owner, server) = (format!("owner_{number}"), format!("server_{number}"));
    let make = format!(
        "CREATE ROLE {owner} LOGIN PASSWORD '{number}'; CREATE ROLE {server} LOGIN PASSWORD '{number}';
         CREATE SCHEMA kagzi AUTHORIZATION {owner};
         GRANT USAGE ON SCHEMA kagzi TO {server};"
    );
    fixture::sql(&admin, &make).await;
    // Whoever the administrator is, and wherever.
    let (_, place) = admin.split_once('@').unwrap();
    let as_role = |role: &str| format!("postgres://{role}:{number}@{place}");
    (as_role(&owner), as_role(&server))
}

#[tokio::test]
async fn a_server_that_may_not_migrate_serves_what_its_owner_made() {
    let (owner, served) = two_roles().await;
    let role = served.split_once("//").and_then(|(_, rest)| rest.split_once(':')).unwrap().0;
    // Before there is a table: those that are made now, and by later upgrades, are granted with it.
    let grant = format!(
        "ALTER DEFAULT PRIVILEGES IN SCHEMA kagzi GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role}"
    );
    fixture::sql(&owner, &grant).await;
    Server::open(&owner, PostgresOptions::default()).await.store_closed().await;

    let server = Server::open(&served, PostgresOptions::default()).await;
    let worker = server.register("charge", 1).await;
    let mut assignments = server.stand_by(worker, "charge").await;
    server.start("charge").await;
    let lease = next(&mut assignments, Duration::from_secs(5)).await.lease();

    server.apply(complete(lease)).await.unwrap();
}

#[tokio::test]
async fn a_server_that_may_not_migrate_and_must_says_so() {
    let (_, served) = two_roles().await;

    let clock = Arc::new(SystemClock::new());
    let opened = PostgresStore::open(&served, PostgresOptions::default(), clock, Arc::new(Silent)).await;

    let error = opened.err().expect("refused").to_string();
    assert!(error.contains("permission denied for schema kagzi"), "{error}");
}
