//! A real server goes away and comes back under clients that have begun something.

mod stage;

use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt;
use kagzi::Client;
use kagzi::client::RunStatus;
use stage::{DEADLINE, Server, json, kagzi};
use tokio::time::timeout;

#[tokio::test]
async fn a_client_that_retries_gets_through_a_restart_and_starts_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kagzi.db");
    let server = Server::start(&file).await;
    let address = server.address.clone();
    let client = Client::connect(&address).await.unwrap();
    let before = client.start("order").queue("orders").id("order-1").await.unwrap();

    server.kill().await;
    // While it is away: a start, the same start again, a wait and a read, all of which may be repeated.
    let (one, other) = (client.clone(), client.clone());
    let first = tokio::spawn(async move { one.start("order").queue("orders").id("order-2").await });
    let second = tokio::spawn(async move { other.start("order").queue("orders").id("order-2").await });
    let waiting = before.clone();
    let ended = tokio::spawn(async move { waiting.finished().await });
    let read = client.clone();
    let read = tokio::spawn(async move { read.get_by_id("order-1").await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!first.is_finished() && !read.is_finished(), "nothing is given up at once");
    let server = Server::start_at(&file, &address).await;

    let first = timeout(DEADLINE, first).await.unwrap().unwrap().unwrap();
    let second = timeout(DEADLINE, second).await.unwrap().unwrap().unwrap();
    assert_eq!(first.run_id(), second.run_id(), "one run has the business id");
    assert_eq!(timeout(DEADLINE, read).await.unwrap().unwrap().unwrap().run_id, before.run_id());
    before.cancel("enough").await.unwrap();
    let ended = timeout(DEADLINE, ended).await.unwrap().unwrap().unwrap();
    assert_eq!(ended.status, RunStatus::Cancelled);
    server.kill().await;
}

#[tokio::test]
async fn watches_go_on_after_a_restart_without_a_gap_and_without_a_repeat() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kagzi.db");
    let server = Server::start(&file).await;
    let address = server.address.clone();
    let client = Client::connect(&address).await.unwrap();
    let run = client.start("order").queue("orders").id("order-1").await.unwrap();
    let mut events = pin!(run.watch());
    let mut runs = pin!(client.runs().watch());
    let mut queues = pin!(client.admin().queues().watch());
    let first = timeout(DEADLINE, events.try_next()).await.unwrap().unwrap().unwrap();
    assert_eq!((first.sequence, first.kind.as_str()), (1, "run_started"));
    let all = timeout(DEADLINE, runs.try_next()).await.unwrap().unwrap().unwrap();
    assert_eq!((all.changed.len(), all.gone.len()), (1, 0));
    let (all, _) = timeout(DEADLINE, queues.try_next()).await.unwrap().unwrap().unwrap();
    assert_eq!((all.changed[0].task_queue.as_str(), all.changed[0].depth.ready), ("orders", 1));

    server.kill().await;
    let server = Server::start_at(&file, &address).await;
    let other = Client::connect(&address).await.unwrap();
    other.start("order").queue("orders").id("order-2").await.unwrap();
    other.handle(run.run_id()).cancel("enough").await.unwrap();

    let second = timeout(DEADLINE, events.try_next()).await.unwrap().unwrap().unwrap();
    assert_eq!((second.sequence, second.kind.as_str()), (2, "run_cancelled"));
    assert_eq!(timeout(DEADLINE, events.try_next()).await.unwrap().unwrap(), None, "it ends with the run");
    let mut told = Vec::new();
    while told.len() < 2 {
        let news = timeout(DEADLINE, runs.try_next()).await.unwrap().unwrap().unwrap();
        assert!(news.gone.is_empty(), "{:?}", news.gone);
        told.extend(news.changed.into_iter().map(|run| (run.business_id.unwrap(), run.status)));
    }
    told.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [("order-1", RunStatus::Cancelled), ("order-2", RunStatus::Pending)];
    assert_eq!(told, expected.map(|(id, status)| (id.to_owned(), status)));
    server.kill().await;
}

#[tokio::test]
async fn the_command_shows_what_happens_until_the_run_ends() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("kagzi.db")).await;
    let started = json(&server, &["run", "start", "order", "--id", "order-1", "--user", "ann"]).await;
    let id = started["run_id"].as_str().unwrap();
    let address = server.address.clone();
    let watching = tokio::spawn(async move {
        let table = kagzi(&["--address", &address, "run", "watch", "order-1"]).await;
        let lines = kagzi(&["--address", &address, "-o", "json", "run", "watch", "order-1"]).await;
        (table, lines)
    });

    json(&server, &["run", "cancel", id, "--reason", "enough"]).await;

    let (table, lines) = timeout(DEADLINE, watching).await.unwrap().unwrap();
    let table = stage::printed(&table);
    assert!(table.contains("run_started") && table.contains("run_cancelled"), "{table}");
    let lines: Vec<serde_json::Value> =
        stage::printed(&lines).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["kind"], &lines[1]["kind"]), (&"run_started".into(), &"run_cancelled".into()));
    let anns = json(&server, &["run", "list", "--user", "ann", "--total"]).await;
    assert_eq!((&anns["runs"][0]["user_id"], &anns["total"]["count"]), (&"ann".into(), &1.into()));
    server.kill().await;
}
