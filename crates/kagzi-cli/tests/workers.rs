//! `kagzi worker …`, `kagzi run steps` and `kagzi queue types` against a real server and a real worker.

mod stage;

use kagzi::{RetryPolicy, Worker, WorkflowContext};
use serde_json::Value;
use stage::{DEADLINE, Server, json, refused};

async fn order(ctx: WorkflowContext, _: Value) -> anyhow::Result<()> {
    let at_once =
        RetryPolicy { initial_interval: Some(std::time::Duration::from_millis(1)), ..RetryPolicy::default() };
    let charge = ctx.step("charge").retry_policy(at_once);
    charge
        .run(|step| async move {
            anyhow::ensure!(step.attempt() > 2, "the bank is away");
            Ok(())
        })
        .await?;
    ctx.run("ship", async { Ok(()) }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_is_listed_shown_drained_and_taken_offline_and_its_steps_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("kagzi.db")).await;
    let mut worker =
        Worker::builder(server.address.as_str(), "orders").label("zone", "b").build().await.unwrap();
    worker.register("order", order);
    let working = tokio::spawn(worker.run());

    let started = json(&server, &["run", "start", "order", "--queue", "orders", "--wait"]).await;
    let run = started["run_id"].as_str().unwrap();
    let steps = async |args: &[&str]| {
        let page = json(&server, &[&["run", "steps", run], args].concat()).await;
        let told = page["steps"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| format!("{} {} {}", one["step"], one["attempt"], one["status"]));
        (told.collect::<Vec<_>>().join(", ").replace('"', ""), page)
    };
    let (all, _) = steps(&[]).await;
    let (first, page) = steps(&["--limit", "3"]).await;
    let (second, page) =
        steps(&["--limit", "3", "--page-token", page["next_page_token"].as_str().unwrap()]).await;
    let (back, _) = steps(&["--limit", "3", "--page-token", page["prev_page_token"].as_str().unwrap()]).await;

    assert_eq!(all, "charge 1 FAILED, charge 2 FAILED, charge 3 COMPLETED, ship 1 COMPLETED");
    assert_eq!((format!("{first}, {second}"), back), (all, first));
    assert_eq!(
        steps(&["--status", "failed", "--step", "charge"]).await.0,
        "charge 1 FAILED, charge 2 FAILED"
    );
    assert_eq!(steps(&["--step", "ship"]).await.0, "ship 1 COMPLETED");

    let listed =
        json(&server, &["worker", "list", "--queue", "orders", "--status", "online", "--total"]).await;
    let id = listed["workers"][0]["worker_id"].as_str().unwrap();
    assert_eq!((&listed["total"]["count"], &listed["prev_page_token"]), (&1.into(), &Value::Null));
    let shown = json(&server, &["worker", "show", id]).await;
    assert_eq!(
        (&shown["workflow_types"][0], &shown["labels"]["zone"]),
        (&"order".into(), &"b".into()),
        "{shown}"
    );
    let types = json(&server, &["queue", "types"]).await;
    assert_eq!((&types[0]["workflow_type"], &types[0]["workers"]), (&"order".into(), &1.into()), "{types}");
    let drained = json(&server, &["worker", "drain", id]).await;
    assert_eq!(drained["status"], "DRAINING", "{drained}");
    tokio::time::timeout(DEADLINE, working).await.expect("a drained worker ends").unwrap().unwrap();
    let types = json(&server, &["queue", "types"]).await;
    assert_eq!(
        (&types[0]["workflow_type"], &types[0]["workers"]),
        (&"order".into(), &0.into()),
        "seen, and gone"
    );
    let offline = json(&server, &["worker", "list", "--status", "offline"]).await;
    assert_eq!(offline["workers"][0]["worker_id"], id);
    let (code, said) = refused(&server, &["worker", "show", "00000000-0000-7000-8000-000000000000"]).await;
    assert_eq!(code, Some(3), "{said}");
    server.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_taken_offline_is_told_and_stops() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("kagzi.db")).await;
    let mut worker = Worker::builder(server.address.as_str(), "orders").build().await.unwrap();
    worker.register("order", order);
    let working = tokio::spawn(worker.run());
    json(&server, &["run", "start", "order", "--queue", "orders", "--wait"]).await;
    let online = json(&server, &["worker", "list", "--status", "online"]).await;

    let id = online["workers"][0]["worker_id"].as_str().unwrap();
    let taken = json(&server, &["worker", "offline", id]).await;
    let ended = tokio::time::timeout(DEADLINE, working).await.expect("it is told").unwrap();

    assert!(taken.to_string().contains("OFFLINE"), "{taken}");
    ended.unwrap();
    let online = json(&server, &["worker", "list", "--status", "online"]).await;
    assert_eq!(online["workers"].as_array().map(Vec::len), Some(0), "{online}");
    server.kill().await;
}
