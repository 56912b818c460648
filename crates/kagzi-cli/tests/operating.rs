//! `kagzi ns`, `kagzi queue`, `kagzi top` and `kagzi run history` against a real server, by the real program.

mod stage;

use serde_json::Value;
use stage::{Server, json, refused};

#[tokio::test]
async fn namespaces_and_queues_are_set_shown_and_refused_with_their_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("kagzi.db")).await;

    let made = json(&server, &["ns", "create", "shop", "--max-concurrent", "5", "--max-attempts", "3"]).await;
    let changed =
        json(&server, &["ns", "update", "shop", "--description", "orders", "--clear", "max-concurrent"])
            .await;
    let disabled = json(&server, &["ns", "disable", "shop", "--note", "unpaid"]).await;
    let listed = json(&server, &["ns", "list", "--limit", "1"]).await;
    let token = listed["next_page_token"].as_str().unwrap();
    let rest = json(&server, &["ns", "list", "--page-token", token]).await;
    let paused = json(&server, &["queue", "pause", "orders", "--type", "refund", "--note", "deploy"]).await;
    let limited = json(&server, &["queue", "limit", "--all", "--max", "7"]).await;
    json(&server, &["run", "start", "order", "--queue", "orders"]).await;
    let queues = json(&server, &["queue", "list"]).await;
    let shown = json(&server, &["queue", "show", "orders"]).await;
    let top = json(&server, &["top", "--once", "--interval", "0.1"]).await;

    assert_eq!((&made["max_concurrent"], &made["maximum_attempts"]), (&5.into(), &3.into()));
    assert_eq!((&changed["max_concurrent"], &changed["description"]), (&Value::Null, &"orders".into()));
    assert_eq!((&disabled["status"], &disabled["disabled_note"]), (&"DISABLED".into(), &"unpaid".into()));
    assert_eq!(
        (&listed["namespaces"][0]["name"], &rest["namespaces"][0]["name"]),
        (&"default".into(), &"shop".into())
    );
    assert_eq!((&paused["paused"], &paused["paused_note"]), (&true.into(), &"deploy".into()));
    assert_eq!(limited["max_concurrent"], 7);
    assert_eq!(
        (&queues["queues"][0]["task_queue"], &queues["queues"][0]["ready"]),
        (&"orders".into(), &1.into())
    );
    assert_eq!(queues["namespace_gate"]["max_concurrent"], 7);
    assert_eq!(shown["types"][1]["gate"]["paused"], true);
    assert_eq!((&top["queues"][0]["ready"], &top["queues"][0]["workers"]), (&1.into(), &0.into()));
    assert_eq!(top["namespace_gate"], "limited to 7 at once");
    assert_eq!(top["runs"][0]["runs"], 1);

    let (code, said) = refused(&server, &["ns", "create", "shop"]).await;
    assert_eq!((code, said.contains("already")), (Some(4), true), "{said}");
    let (code, said) = refused(&server, &["ns", "show", "nowhere"]).await;
    assert_eq!((code, said.contains("kagzi ns create nowhere")), (Some(3), true), "{said}");
    let (code, said) = refused(&server, &["queue", "limit", "orders", "--max", "0"]).await;
    assert_eq!((code, said.contains("max_concurrent is 0")), (Some(2), true), "{said}");
    let (code, said) = refused(&server, &["ns", "list", "--page-token", "x"]).await;
    assert_eq!((code, said.contains("page_token is \"x\"")), (Some(2), true), "{said}");
    server.kill().await;
}

#[tokio::test]
async fn a_history_is_shown_by_kind_by_step_and_from_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("kagzi.db")).await;
    let started = json(&server, &["run", "start", "order"]).await;
    let run = started["run_id"].as_str().unwrap();
    for verb in ["terminate", "retry", "terminate"] {
        json(&server, &["run", verb, run]).await;
    }
    let history = async |args: &[&str]| {
        let shown = json(&server, &[&["run", "history", run], args].concat()).await;
        let numbers =
            shown["events"].as_array().unwrap().iter().map(|event| event["sequence"].as_u64().unwrap());
        numbers.collect::<Vec<_>>()
    };

    assert_eq!(history(&[]).await, [1, 2, 3, 4]);
    assert_eq!(history(&["--kind", "run_failed"]).await, [2, 4]);
    assert_eq!(history(&["--kind", "run_failed,run_started"]).await, [1, 2, 4]);
    assert_eq!(history(&["--last", "2"]).await, [3, 4], "the newest, in order");
    assert_eq!(history(&["--last", "1", "--kind", "run_failed"]).await, [4]);
    assert_eq!(history(&["--last", "9", "--after", "2"]).await, [3, 4]);
    assert_eq!(history(&["--until", "1h"]).await, [0; 0]);
    assert_eq!(history(&["--since", "1h"]).await, [1, 2, 3, 4]);
    assert_eq!(history(&["--step", "charge"]).await, [0; 0]);
    let (code, said) = refused(&server, &["run", "history", run, "--kind", "run_exploded"]).await;
    assert_eq!((code, said.contains("kinds is \"run_exploded\"")), (Some(2), true), "{said}");
    let (code, said) = refused(&server, &["run", "history", run, "--picture", "--last", "1"]).await;
    assert_eq!((code, said.contains("cannot be used with")), (Some(2), true), "{said}");
    server.kill().await;
}
