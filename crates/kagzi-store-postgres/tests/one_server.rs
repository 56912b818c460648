//! One server on a database of its own.

mod stage;

use std::{sync::Arc, time::Duration};

use kagzi_model::{Act, Author, Rejection, RunKey, Status, act};
use kagzi_store::{LaneStats, Silent, StoreError, SystemClock};
use kagzi_store_postgres::{PostgresOptions, PostgresStore, fixture, statements};
use stage::{Server, complete, namespace, next, record};

const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_run_is_started_executed_and_read_back() {
    let server = Server::open(&fixture::database().await, PostgresOptions::default()).await;
    let worker = server.register("charge", 10).await;
    let mut assignments = server.stand_by(worker, "charge").await;

    let run = server.start("charge").await;
    let lease = next(&mut assignments, SOON).await.lease();
    server.apply(record(lease.clone(), "pay", 0)).await.unwrap();
    server.apply(complete(lease)).await.unwrap();

    let view = server.store.run(&namespace(), run).await.unwrap().unwrap();
    assert_eq!(view.run.state.status(), Status::Completed);
    assert_eq!(&*view.input.unwrap().data, b"{\"n\":1}");
    assert_eq!(&*view.output.unwrap().data, b"\"done\"");
    let events = server.store.events(&namespace(), run, 0, 100).await.unwrap();
    let names: Vec<_> = events.iter().map(|event| event.kind.name()).collect();
    assert_eq!(names, ["run_started", "run_claimed", "step_completed", "run_completed"]);
    assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
}

#[tokio::test]
async fn servers_that_open_at_once_migrate_once() {
    let url = fixture::database().await;

    let opened = futures_util::future::join_all((0..6).map(|_| {
        PostgresStore::open(&url, PostgresOptions::default(), Arc::new(SystemClock::new()), Arc::new(Silent))
    }))
    .await;

    assert!(opened.into_iter().all(|opened| opened.is_ok()));
    let once = "SELECT count(*) > 1 AND count(*) = max(number) FROM kagzi.migrations";
    assert_eq!(fixture::sql(&url, once).await, ["t"]);
}

#[tokio::test]
async fn a_newer_schema_is_refused_with_what_to_do() {
    let url = fixture::database().await;
    Server::open(&url, PostgresOptions::default()).await;
    fixture::sql(&url, "INSERT INTO kagzi.migrations (number) VALUES (999)").await;

    let clock = Arc::new(SystemClock::new());
    let opened = PostgresStore::open(&url, PostgresOptions::default(), clock, Arc::new(Silent)).await;

    let error = opened.err().unwrap().to_string();
    assert!(error.contains("schema 999") && error.contains("newer kagzi"), "{error}");
}

#[tokio::test]
async fn every_statement_is_accepted_by_the_engine() {
    let url = fixture::database().await;
    Server::open(&url, PostgresOptions::default()).await;

    for (name, sql) in statements() {
        fixture::sql(&url, &format!("PREPARE {name} AS {sql}")).await;
    }
}

#[tokio::test]
async fn a_killed_connection_costs_one_error_and_no_restart() {
    let url = fixture::database().await;
    let server = Server::open(&url, PostgresOptions::default()).await;
    let before = server.start("charge").await;

    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid()";
    fixture::sql(&url, kill).await;

    let mut errors = 0;
    let after = loop {
        match server.store.apply(vec![stage::start("charge")]).await {
            Ok(_) => break server.start("charge").await,
            Err(StoreError::Unavailable(_)) if errors < 20 => {
                errors += 1;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => panic!("{error}"),
        }
    };
    for run in [before, after] {
        assert!(server.store.run(&namespace(), run).await.unwrap().is_some());
    }
    assert!(errors <= 3, "{errors} calls failed");
}

#[tokio::test]
async fn text_with_a_nul_is_no_trouble() {
    let server = Server::open(&fixture::database().await, PostgresOptions::default()).await;
    let worker = server.register("charge", 1).await;
    let mut assignments = server.stand_by(worker, "charge").await;
    let run = server.start("charge").await;
    let lease = next(&mut assignments, SOON).await.lease();

    let why = "a\0b".to_owned();
    server.apply(lease.report(act::Release { why })).await.unwrap();

    let events = server.store.events(&namespace(), run, 0, 100).await.unwrap();
    let released = kagzi_model::EventKind::RunReleased { why: "a\0b".into() };
    assert!(events.iter().any(|event| event.kind == released));
}

#[tokio::test]
async fn an_unknown_run_is_refused_and_its_neighbours_are_not() {
    let server = Server::open(&fixture::database().await, PostgresOptions::default()).await;
    let missing = kagzi_model::RunId(uuid::Uuid::now_v7());
    let cancel = RunKey::new(namespace(), missing).order(Author::new("tester", "no"), act::Cancel);

    let outcomes =
        server.store.apply(vec![stage::start("charge"), cancel, stage::start("charge")]).await.unwrap();

    assert!(outcomes[0].is_ok() && outcomes[2].is_ok());
    assert!(matches!(outcomes[1], Err(Rejection::NotFound { .. })));
    assert_eq!(LaneStats::get(&server.store.stats().conflicts), 0);
}

#[tokio::test]
async fn behind_a_pooler_no_setting_is_left_in_the_session() {
    let url = fixture::database().await;
    let server = Server::open(&url, PostgresOptions { notify: false, ..PostgresOptions::default() }).await;

    server.start("charge").await;

    let listening = "SELECT count(*) FROM pg_stat_activity
                      WHERE datname = current_database() AND query ILIKE 'LISTEN%'";
    assert_eq!(fixture::sql(&url, listening).await, ["0"]);
    server.store.ping().await.unwrap();
}

#[tokio::test]
async fn the_namespace_comes_first_in_every_primary_and_unique_key() {
    let url = fixture::database().await;
    Server::open(&url, PostgresOptions::default()).await.store_closed().await;

    // Migrations and levels are the database's and belong to no namespace.
    let keys = "SELECT indexrelid::regclass
                  FROM pg_index
                  JOIN pg_class ON pg_class.oid = indrelid
                  JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
                 WHERE relnamespace = 'kagzi'::regnamespace AND relname NOT IN ('migrations', 'levels')
                   AND indisunique AND attname <> 'namespace_id'";
    let count = "SELECT count(*) >= 5 FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
                  WHERE relnamespace = 'kagzi'::regnamespace AND indisunique";

    assert_eq!(fixture::sql(&url, keys).await, Vec::<String>::new());
    assert_eq!(fixture::sql(&url, count).await, ["t"], "there are keys at all");
}

/// The round trips of one call with so many starts that have business ids.
async fn round_trips_of(server: &Server, starts: usize) -> u64 {
    let before = LaneStats::get(&server.store.stats().round_trips);
    let commands = (0..starts).map(|n| {
        let mut command = stage::start("charge");
        if let Act::Start(start) = &mut command.act {
            start.business_id = Some(format!("order-{starts}-{n}").into());
        }
        command
    });
    let outcomes = server.store.apply(commands.collect()).await.unwrap();
    assert!(outcomes.iter().all(Result::is_ok));
    // The count is told after the turn that answers.
    let answered = async {
        while LaneStats::get(&server.store.stats().round_trips) == before {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, answered).await.unwrap();
    LaneStats::get(&server.store.stats().round_trips) - before
}

#[tokio::test]
async fn a_thousand_starts_with_business_ids_take_as_many_round_trips_as_one() {
    let server = Server::open(&fixture::database().await, PostgresOptions::default()).await;
    server.start("charge").await;

    let (one, many) = (round_trips_of(&server, 1).await, round_trips_of(&server, 1_000).await);

    assert_eq!(one, many);
    assert!(many <= 3, "{many}");
}
