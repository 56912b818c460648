//! `kagzi backup`, `restore` and `verify` beside a real server under load.

mod stage;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kagzi::worker::CancellationToken;
use kagzi::{Client, Worker, WorkflowContext};
use parking_lot::Mutex;
use stage::{DEADLINE, Server, complaint, kagzi, printed};

/// Starts runs without end, and a worker that executes them.
struct Load {
    acknowledged: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    worker: CancellationToken,
}

impl Load {
    async fn on(address: &str) -> Load {
        let mut worker = Worker::builder(address, "q").handle_signals(false).build().await.unwrap();
        worker.register("note", |ctx: WorkflowContext, n: u64| async move {
            ctx.run("write", async move { Ok(n + 1) }).await
        });
        let token = worker.shutdown_token();
        tokio::spawn(worker.run());
        let (acknowledged, stop) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        for _ in 0..4 {
            let client = Client::connect(address).await.unwrap();
            let (acknowledged, stop) = (acknowledged.clone(), stop.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let Ok(run) = client.workflow("note", "q", 1).await else { return };
                    acknowledged.lock().push(run.run_id().to_owned());
                }
            });
        }
        Load { acknowledged, stop, worker: token }
    }

    async fn until_acknowledged(&self, count: usize) -> Vec<String> {
        let waited = tokio::time::timeout(DEADLINE, async {
            while self.acknowledged.lock().len() < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        waited.await.expect("the server acknowledges starts");
        self.acknowledged.lock().clone()
    }

    fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.worker.cancel();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_under_load_has_every_run_that_was_acknowledged_before_it_began() {
    let dir = tempfile::tempdir().unwrap();
    let (live, copy) = (dir.path().join("live.db"), dir.path().join("copy.db"));
    let server = Server::start(&live).await;
    let load = Load::on(&server.address).await;

    let before = load.until_acknowledged(200).await;
    // Without --store: the server says which file it has.
    let backup = kagzi(&["backup", copy.to_str().unwrap(), "--address", &server.address]).await;
    let after = load.until_acknowledged(before.len() + 20).await;
    let verified = kagzi(&["verify", copy.to_str().unwrap(), "-o", "json"]).await;
    let live_verified = kagzi(&["verify", live.to_str().unwrap()]).await;
    load.end();

    assert!(printed(&backup).contains("checked"), "{backup:?}");
    assert!(after.len() > before.len(), "the server went on meanwhile");
    let report: serde_json::Value = serde_json::from_str(&printed(&verified)).unwrap();
    assert_eq!(report["sound"], true);
    assert!(report["runs"].as_u64().unwrap() >= before.len() as u64, "{report}");
    assert!(printed(&live_verified).contains("is sound"), "a live database can be checked too");
    // Another server opens the copy and knows every one of them.
    let second = Server::start(&copy).await;
    let client = Client::connect(second.address.as_str()).await.unwrap();
    for run in &before {
        let seen = client.get(run.clone()).await.unwrap();
        assert_eq!(&seen.run_id, run);
    }
    second.kill().await;
    server.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_replaces_nothing_unless_told_and_never_a_database_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let text = |name: &str| file(name).to_str().unwrap().to_owned();
    let server = Server::start(&file("live.db")).await;
    let client = Client::connect(server.address.as_str()).await.unwrap();
    let kept = client.workflow("note", "q", 1).id("kept").await.unwrap();
    let store = format!("sqlite:{}", text("live.db"));
    printed(&kagzi(&["backup", &text("copy.db"), "--store", &store]).await);
    client.workflow("note", "q", 1).id("after the backup").await.unwrap();

    let again = kagzi(&["backup", &text("copy.db"), "--store", &store]).await;
    let in_use = kagzi(&["restore", &text("copy.db"), "--store", &store, "--replace"]).await;
    server.kill().await;
    let there = kagzi(&["restore", &text("copy.db"), "--store", &store]).await;
    let told = kagzi(&["restore", &text("copy.db"), "--store", &store, "--replace"]).await;

    assert!(complaint(&again).contains("is there already"), "{again:?}");
    assert!(complaint(&in_use).contains("in use by another kagzi process"), "{in_use:?}");
    assert!(complaint(&there).contains("say --replace"), "{there:?}");
    printed(&told);
    let server = Server::start(&file("live.db")).await;
    let client = Client::connect(server.address.as_str()).await.unwrap();
    assert_eq!(client.get_by_id("kept").await.unwrap().run_id, kept.run_id());
    assert!(client.get_by_id("after the backup").await.is_err(), "the database is the one of the backup");
    server.kill().await;
}

#[tokio::test]
async fn a_damaged_backup_is_named_and_not_restored() {
    let dir = tempfile::tempdir().unwrap();
    let text = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let server = Server::start(&dir.path().join("live.db")).await;
    let client = Client::connect(server.address.as_str()).await.unwrap();
    client.workflow("note", "q", 1).await.unwrap();
    let store = format!("sqlite:{}", text("live.db"));
    printed(&kagzi(&["backup", &text("copy.db"), "--store", &store]).await);
    let copy = rusqlite::Connection::open(text("copy.db")).unwrap();
    copy.execute_batch("UPDATE runs SET status = 4, finished_at = 1, due_at = NULL").unwrap();
    drop(copy);
    std::fs::write(text("noise.db"), "noise".repeat(4096)).unwrap();

    let damaged = kagzi(&["verify", &text("copy.db")]).await;
    let refused =
        kagzi(&["restore", &text("copy.db"), "--store", &format!("sqlite:{}", text("new.db"))]).await;
    let noise = kagzi(&["verify", &text("noise.db")]).await;

    assert_eq!(damaged.status.code(), Some(1), "{damaged:?}");
    assert!(String::from_utf8_lossy(&damaged.stdout).contains("I1 an ended run has one end"), "{damaged:?}");
    assert!(complaint(&refused).contains("is damaged"), "{refused:?}");
    assert!(!dir.path().join("new.db").exists());
    assert!(complaint(&noise).contains("not a database"), "{noise:?}");
    server.kill().await;
}
