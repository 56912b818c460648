//! Migrations on a database that is full and in use.

mod stage;

use std::sync::Arc;

use kagzi_store::{Silent, Store, StoreError, SystemClock};
use kagzi_store_postgres::{PostgresOptions, PostgresStore, bouncer, fixture};
use stage::{Server, connect, until};
use tokio_postgres::Client;

async fn open(url: &str) -> Result<Store, StoreError> {
    let clock = Arc::new(SystemClock::new());
    PostgresStore::open(url, PostgresOptions::default(), clock, Arc::new(Silent)).await
}

/// A database with a run in it, as the last release left it: an index is to be made.
async fn one_index_behind() -> String {
    let url = fixture::database().await;
    let server = Server::open(&url, PostgresOptions::default()).await;
    server.start("charge").await;
    server.store_closed().await;
    fixture::sql(&url, "DROP INDEX kagzi.runs_scheduled_finished").await;
    // What came after it is taken back too.
    fixture::sql(&url, "ALTER TABLE kagzi.workers DROP COLUMN handles_failures").await;
    fixture::sql(&url, EVENTS_IN_JSON).await;
    fixture::sql(&url, "ALTER TABLE kagzi.workers DROP COLUMN row_version; DROP TABLE kagzi.levels").await;
    fixture::sql(&url, "ALTER TABLE kagzi.runs DROP COLUMN generation, DROP COLUMN first_seq").await;
    fixture::sql(&url, "DROP TABLE kagzi.old_generations; DROP TABLE kagzi.nouns").await;
    let people = "DROP TABLE kagzi.interventions, kagzi.intervention_assignees, kagzi.notices";
    fixture::sql(&url, people).await;
    fixture::sql(&url, "DROP TABLE kagzi.published_events, kagzi.event_subscriptions").await;
    fixture::sql(&url, "DELETE FROM kagzi.migrations WHERE number > 12").await;
    url
}

/// The table of events as it was before, with one event of the run and one that nobody understands.
const EVENTS_IN_JSON: &str = "
    CREATE TABLE kagzi.old AS SELECT namespace_id, run_id FROM kagzi.events;
    DROP TABLE kagzi.events;
    CREATE TABLE kagzi.events (
        namespace_id TEXT NOT NULL, run_id UUID NOT NULL, seq BIGINT NOT NULL, at BIGINT NOT NULL,
        kind SMALLINT NOT NULL, step TEXT, detail TEXT NOT NULL, payload BYTEA, content_type TEXT,
        PRIMARY KEY (namespace_id, run_id, seq));
    CREATE UNIQUE INDEX events_one_result ON kagzi.events (namespace_id, run_id, step) WHERE kind = 4;
    INSERT INTO kagzi.events
    SELECT namespace_id, run_id, 1, 7, 1, NULL, '{\"event\":\"run_started\"}', '[1]'::bytea, 'text/x' FROM \
    kagzi.old;
    INSERT INTO kagzi.events
    SELECT namespace_id, run_id, 2, 9, 99, NULL, '{\"event\":\"signalled\",\"by\":\"ann\"}', NULL, NULL \
    FROM kagzi.old;
    DROP TABLE kagzi.old";

#[tokio::test]
async fn events_in_json_are_rewritten_and_none_is_lost_not_even_one_that_nobody_understands() {
    let url = one_index_behind().await;

    let store = open(&url).await.unwrap();

    let run = fixture::sql(&url, "SELECT run_id FROM kagzi.runs").await.remove(0);
    let run = kagzi_model::RunId(run.parse().unwrap());
    let events = store.events(&"default".into(), run, 0, 10).await.unwrap();
    let shown: Vec<_> = events.iter().map(|event| (event.seq, event.at.0, event.kind.to_json())).collect();
    let newer = r#"{"event":"signalled","by":"ann"}"#.to_owned();
    assert_eq!(shown, [(1, 7, r#"{"event":"run_started"}"#.to_owned()), (2, 9, newer)]);
    let input = events[0].payload.as_ref().unwrap();
    assert_eq!((&input.data[..], &*input.content_type), (&b"[1]"[..], "text/x"));
    assert_eq!(fixture::sql(&url, "SELECT to_regclass('kagzi.events_json')").await, ["NULL"]);
    assert_eq!(fixture::sql(&url, COMPLETE).await, ["t"]);
}

const VALID: &str = "SELECT count(*) FROM pg_index WHERE indexrelid = \
                     to_regclass('kagzi.runs_scheduled_finished') AND indisvalid";
const INVALID: &str = "SELECT count(*) FROM pg_index WHERE indexrelid = \
                       to_regclass('kagzi.runs_scheduled_finished') AND NOT indisvalid";
const BUILDERS: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE 'CREATE INDEX CONCURRENTLY%' AND wait_event_type = \
    'Lock'";
const COMPLETE: &str = "SELECT count(*) = max(number) FROM kagzi.migrations";

/// A transaction that has written to the table, as every server has them: the index waits for its end.
async fn writer(url: &str) -> Client {
    let writer = connect(url).await;
    writer.batch_execute("BEGIN; UPDATE kagzi.runs SET version = version").await.unwrap();
    writer
}

#[tokio::test]
async fn an_index_is_built_beside_writers_who_do_not_wait_for_it() {
    let url = one_index_behind().await;
    let earlier = writer(&url).await;

    let opening = tokio::spawn({
        let url = url.clone();
        async move { open(&url).await.map(drop) }
    });
    until(&url, BUILDERS, "1").await;
    // An index that is built within a transaction would hold this one up until the other has ended.
    let later = connect(&url).await;
    later
        .batch_execute(
            "SET lock_timeout = '2s'; INSERT INTO kagzi.runs SELECT namespace_id, \
                         gen_random_uuid(),
        NULL, workflow_type, task_queue, status, state, reason, error_code, version, epoch, due_at, \
        sweep_at, lease_worker,
        attempts, dispatch_count, crashes, created_at, started_at, finished_at, deadline_at, options FROM \
        kagzi.runs",
        )
        .await
        .unwrap();
    earlier.batch_execute("COMMIT").await.unwrap();
    opening.await.unwrap().unwrap();

    assert_eq!(fixture::sql(&url, VALID).await, ["1"]);
    assert_eq!(fixture::sql(&url, COMPLETE).await, ["t"]);
    assert_eq!(fixture::sql(&url, "SELECT count(*) FROM kagzi.runs").await, ["2"]);
}

#[tokio::test]
async fn what_an_interrupted_migration_left_behind_is_made_good_by_the_next_start() {
    let url = one_index_behind().await;
    let earlier = writer(&url).await;
    let interrupted = tokio::spawn({
        let url = url.clone();
        async move { open(&url).await.map(drop) }
    });
    until(&url, BUILDERS, "1").await;
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND query LIKE 'CREATE INDEX CONCURRENTLY%'";
    fixture::sql(&url, kill).await;
    assert!(matches!(interrupted.await.unwrap(), Err(StoreError::Unavailable(_))));
    earlier.batch_execute("COMMIT").await.unwrap();
    assert_eq!(fixture::sql(&url, INVALID).await, ["1"], "a ruin stands there");

    open(&url).await.unwrap();

    assert_eq!(fixture::sql(&url, VALID).await, ["1"]);
    assert_eq!(fixture::sql(&url, COMPLETE).await, ["t"]);
}

#[tokio::test]
async fn servers_that_open_at_once_build_an_index_once_and_none_waits_in_the_others_way() {
    let url = one_index_behind().await;

    let opened = futures_util::future::join_all((0..6).map(|_| open(&url))).await;

    opened.into_iter().for_each(|opened| drop(opened.unwrap()));
    assert_eq!(fixture::sql(&url, VALID).await, ["1"]);
    assert_eq!(fixture::sql(&url, COMPLETE).await, ["t"]);
}

#[tokio::test]
async fn behind_a_pooler_an_index_on_a_full_table_asks_for_a_direct_url() {
    let direct = one_index_behind().await;
    let pooler = bouncer::Bouncer::start(&direct);

    let refused = open(&pooler.url(&direct)).await.err().expect("refused").to_string();
    open(&direct).await.unwrap();

    assert!(refused.contains("direct URL") && refused.contains("runs_scheduled_finished"), "{refused}");
    assert_eq!(fixture::sql(&direct, COMPLETE).await, ["t"]);
}
