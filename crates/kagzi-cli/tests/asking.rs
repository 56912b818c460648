//! `kagzi run start --signal`, `run ask`, `run value` and `kagzi promise` against a real server and a worker,
//! by the real program.

mod stage;

use std::time::Duration;

use kagzi::WorkflowContext;
use stage::{Server, json, refused};

async fn cart(ctx: WorkflowContext, _: ()) -> anyhow::Result<Vec<String>> {
    let first: String = ctx.signal("item").await?;
    let requests = ctx.requests::<String, usize>("add");
    let mut items = vec![first];
    ctx.set_value("items", &items)?;
    while items.len() < 3 {
        let Some(request) = requests.next().await? else { break };
        if request.input.is_empty() {
            request.reject("an item has a name").await?;
            continue;
        }
        items.push(request.input.clone());
        ctx.set_value("items", &items)?;
        request.reply(&items.len()).await?;
    }
    let payment = ctx.promise::<String>("payment").heartbeat(Duration::from_secs(3600)).await?;
    ctx.set_value("token", payment.token())?;
    items.push(payment.await?);
    Ok(items)
}

#[tokio::test]
async fn a_run_is_started_with_a_signal_asked_looked_at_and_paid_for() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("kagzi.db")).await;
    let mut worker = kagzi::Worker::builder(server.address.clone(), "shop").build().await.unwrap();
    worker.register("cart", cart);
    let worker = tokio::spawn(worker.run());

    let start = ["run", "start", "cart", "--queue", "shop", "--id", "cart-7", "--signal", r#"item="tea""#];
    let started = json(&server, &start).await;
    let run = started["run_id"].as_str().unwrap();
    assert_eq!(json(&server, &start).await["already_exists"], true);

    let asked = json(&server, &["run", "ask", "cart-7", "add", r#""milk""#, "--ask-id", "click-1"]).await;
    assert_eq!((&asked["reply"], &asked["run_id"]), (&2.into(), &run.into()));
    let again = json(&server, &["run", "ask", run, "add", r#""milk""#, "--ask-id", "click-1"]).await;
    assert_eq!(again["reply"], 2);
    let (code, said) = refused(&server, &["run", "ask", run, "add", r#""""#]).await;
    assert_eq!((code, said.contains("an item has a name")), (Some(1), true), "{said}");
    let value = json(&server, &["run", "value", run, "items"]).await;
    assert_eq!(value["value"], serde_json::json!(["tea", "milk"]));
    let (code, said) = refused(&server, &["run", "value", run, "nothing"]).await;
    assert_eq!((code, said.contains("no value 'nothing'")), (Some(3), true), "{said}");

    assert_eq!(json(&server, &["run", "ask", run, "add", r#""cups""#]).await["reply"], 3);
    // The token is published before the run waits for its promise.
    let token = loop {
        let args = ["--address", &server.address, "-o", "json", "run", "value", run, "token"];
        let found = stage::kagzi(&args).await;
        if found.status.success() {
            let shown: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
            break shown["value"].as_str().unwrap().to_owned();
        }
    };
    assert_eq!(json(&server, &["promise", "beat", &token]).await["alive"], true);
    let (code, said) = refused(&server, &["promise", "complete", "payment", r#""x""#]).await;
    assert_eq!((code, said.contains("not the token of a promise")), (Some(2), true), "{said}");
    let (code, said) = refused(&server, &["promise", "fail", "paymnt", "no", "--run", run]).await;
    assert_eq!((code, said.contains("no promise 'paymnt'")), (Some(3), true), "{said}");
    let (code, said) = refused(&server, &["promise", "complete", &token, "not json"]).await;
    assert_eq!((code, said.contains("invalid JSON")), (Some(2), true), "{said}");
    let paid = json(&server, &["promise", "complete", &token, r#""receipt""#]).await;
    assert_eq!((&paid["already_completed"], &paid["promise"]), (&false.into(), &"payment".into()));
    let late = json(&server, &["promise", "fail", "payment", "too late", "--run", run]).await;
    assert_eq!(late["already_completed"], true);

    let ended = json(&server, &["run", "wait", run]).await;
    assert_eq!(ended["output"], serde_json::json!(["tea", "milk", "cups", "receipt"]));
    worker.abort();
    server.kill().await;
}
