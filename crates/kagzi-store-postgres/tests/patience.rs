//! A database that keeps us waiting, host by host, lock by lock, and by its clock.

mod stage;

use std::{sync::Arc, time::Duration};

use kagzi_model::{Author, RunKey, Timestamp, act};
use kagzi_store::{Clock, Direction, LaneStats, ManualClock, PageRequest, RunFilter, StoreError};
use kagzi_store_postgres::{PostgresClock, PostgresOptions, PostgresStore, bouncer, fixture};
use stage::{Server, complete, connect, namespace, next, until};

fn impatient() -> PostgresOptions {
    PostgresOptions {
        connect_timeout: Duration::from_secs(2),
        statement_timeout: Duration::from_secs(2),
        ..PostgresOptions::default()
    }
}

#[tokio::test]
async fn a_host_that_says_nothing_does_not_keep_the_next_one_from_being_tried() {
    let url = fixture::database().await;
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (login, place) = url.split_once('@').unwrap();
    let silent = format!("127.0.0.1:{}", silent.local_addr().unwrap().port());

    let server = Server::open(&format!("{login}@{silent},{place}"), impatient()).await;

    let run = server.start("charge").await;
    assert!(server.store.run(&namespace(), run).await.unwrap().is_some());
}

/// Holds a lock that everybody needs, and sees what becomes of a read and a write.
async fn locked_out(url: &str, direct: &str) {
    let server = Server::open(url, impatient()).await;
    let run = server.start("charge").await;
    let holder = connect(direct).await;
    holder.batch_execute("BEGIN; LOCK TABLE kagzi.runs").await.unwrap();

    let read = server.store.run(&namespace(), run).await;
    let page = PageRequest { from: None, direction: Direction::Next, limit: 10 };
    let listed = server.store.runs(&namespace(), &RunFilter::default(), &page).await;
    let written = server.store.apply(vec![stage::start("charge")]).await;

    assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
    assert!(matches!(listed, Err(StoreError::Unavailable(_))), "{listed:?}");
    assert!(matches!(written, Err(StoreError::Unavailable(_))), "{written:?}");
    // The database itself has given up too: nothing of ours goes on there, or would when the lock is gone.
    let waiting = "SELECT count(*) FROM pg_stat_activity
                    WHERE datname = current_database() AND state = 'active' AND wait_event_type = 'Lock'";
    until(direct, waiting, "0").await;
    holder.batch_execute("ROLLBACK").await.unwrap();
    assert!(server.store.run(&namespace(), run).await.unwrap().is_some());
}

#[tokio::test]
async fn whoever_waits_for_a_lock_is_told_in_time_and_nothing_goes_on_in_the_database() {
    let url = fixture::database().await;

    locked_out(&url, &url).await;
}

#[tokio::test]
async fn without_settings_in_the_session_too_nothing_goes_on_in_the_database() {
    let url = fixture::database().await;

    locked_out(&format!("{url}?notify=off"), &url).await;
}

#[tokio::test]
async fn behind_a_pooler_too_nothing_goes_on_in_the_database() {
    let direct = fixture::database().await;
    let pooler = bouncer::Bouncer::start(&direct);

    locked_out(&pooler.url(&direct), &direct).await;
}

#[tokio::test]
async fn a_batch_that_the_database_ends_for_a_deadlock_is_repeated() {
    let url = fixture::database().await;
    // The database looks for a deadlock once, so long after a wait began: by then the other must wait too.
    let patient = format!("{url}?options=-c%20deadlock_timeout%3D5s");
    let server = Arc::new(Server::open(&patient, PostgresOptions::default()).await);
    let worker = server.register("charge", 2).await;
    let mut assignments = server.stand_by(worker, "charge").await;
    for _ in 0..2 {
        server.start("charge").await;
    }
    let mut leases = Vec::new();
    for _ in 0..2 {
        leases.push(next(&mut assignments, Duration::from_secs(5)).await.lease());
    }
    leases.sort_by_key(|lease| lease.run);
    let lock = |at: usize| format!("SELECT 1 FROM kagzi.runs WHERE run_id = '{}' FOR UPDATE", leases[at].run);

    // The other has the second run and never looks for deadlocks, so it is our batch that is ended.
    let other = connect(&url).await;
    other.batch_execute("BEGIN; SET LOCAL deadlock_timeout = '1h'").await.unwrap();
    other.batch_execute(&lock(1)).await.unwrap();
    let batch = leases.iter().cloned().map(complete).collect();
    let applying = tokio::spawn({
        let server = server.clone();
        async move { server.store.apply(batch).await }
    });
    let waiting = "SELECT count(*) FROM pg_stat_activity
                    WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until(&url, waiting, "1").await;
    other.batch_execute(&lock(0)).await.unwrap();
    other.batch_execute("ROLLBACK").await.unwrap();

    let outcomes = applying.await.unwrap().unwrap();
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert!(LaneStats::get(&server.store.stats().conflicts) >= 1, "there was no deadlock");
}

#[tokio::test]
async fn the_databases_clock_decides_however_wrong_this_machines_is() {
    let url = fixture::database().await;
    let database = async || {
        let sql = "SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint";
        Timestamp(fixture::sql(&url, sql).await[0].parse().unwrap())
    };
    let an_hour_slow = ManualClock::new(Timestamp(database().await.0 - 3_600_000_000));

    let before = database().await;
    let clock = PostgresClock::start_from(Arc::new(an_hour_slow.clone()), &url, &impatient()).await.unwrap();
    let seen = clock.now();
    let after = database().await;

    // A clock that stands still during the measurement is measured too late at most by as long as that took.
    assert!(before <= seen && seen <= after, "{before:?} {seen:?} {after:?}");
    assert!((3_599_000..3_660_000).contains(&clock.skew_ms()), "{}", clock.skew_ms());
    an_hour_slow.advance(Duration::from_secs(60));
    assert_eq!(clock.now(), seen + Duration::from_secs(60));
}

#[tokio::test]
async fn a_column_that_changes_under_a_prepared_statement_costs_one_error() {
    let url = fixture::database().await;
    let server = Server::open(&url, PostgresOptions::default()).await;
    let run = server.start("charge").await;
    assert!(server.store.run(&namespace(), run).await.unwrap().is_some());

    // What an upgrade of another server may do.
    fixture::sql(&url, "ALTER TABLE kagzi.runs ALTER COLUMN dispatch_count TYPE BIGINT").await;
    fixture::sql(&url, "ALTER TABLE kagzi.runs ALTER COLUMN dispatch_count TYPE INTEGER").await;
    fixture::sql(&url, "ALTER TABLE kagzi.runs ALTER COLUMN task_queue TYPE VARCHAR").await;

    assert!(server.store.run(&namespace(), run).await.unwrap().is_some(), "the read is made again by itself");
    let cancel = RunKey::new(namespace(), run).order(Author::new("tester", String::new()), act::Cancel);
    let mut errors = 0;
    while let Err(error) = server.store.apply(vec![cancel.clone()]).await {
        assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
        errors += 1;
        assert!(errors < 3, "{error}");
    }
}

#[tokio::test]
async fn time_goes_on_although_the_databases_clock_was_set_back() {
    let url = fixture::database().await;
    let local = ManualClock::new(Timestamp(1));
    let clock = PostgresClock::start_from(Arc::new(local.clone()), &url, &impatient()).await.unwrap();

    // An hour passes here and not there: to this server the database's clock went back by an hour.
    local.advance(Duration::from_secs(3600));
    let before = clock.now();
    clock.measure().await.unwrap();
    let measured = clock.now();
    local.advance(Duration::from_secs(10));

    assert!(measured >= before, "it never goes back");
    assert_eq!(clock.now() - measured, Duration::from_secs(9), "and never stands still");
    assert!(
        clock.now() - clock.calendar() > Duration::from_secs(3590),
        "schedules wait for the database's time"
    );
    assert_eq!(clock.leaps(), 0);
}

#[tokio::test]
async fn a_database_that_is_not_utf8_is_refused_with_the_reason() {
    let url = fixture::database().await;
    let name = format!("latin_{}", uuid::Uuid::new_v4().simple());
    let create =
        format!("CREATE DATABASE {name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
    fixture::sql(&url, &create).await;
    let (server, _) = url.rsplit_once('/').expect("the fixture's address ends with the database's name");
    let latin = format!("{server}/{name}");

    let clock = Arc::new(ManualClock::new(Timestamp(1)));
    let opened = PostgresStore::open(&latin, impatient(), clock, Arc::new(kagzi_store::Silent)).await;

    let error = opened.err().expect("it cannot hold every text").to_string();
    assert!(error.contains("LATIN1") && error.contains("UTF8"), "{error}");
}
