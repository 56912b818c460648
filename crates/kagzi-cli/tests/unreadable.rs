//! One row that cannot be read, under the real server: everybody else's runs complete, and an operator is
//! told which row it is.

mod stage;

use std::path::Path;

use kagzi::{Worker, WorkflowContext};
use stage::{Server, json, kagzi, refused};

async fn order(_: WorkflowContext, _: serde_json::Value) -> anyhow::Result<u32> {
    Ok(1)
}

/// A server whose worker completes orders, while `during` asks for things.
async fn with_worker(server: &Server, during: impl Future<Output = ()>) {
    let mut worker = Worker::builder(&server.address, "orders").handle_signals(false).build().await.unwrap();
    worker.register("order", order);
    let stop = worker.shutdown_token();
    let working = tokio::spawn(worker.run());
    during.await;
    stop.cancel();
    working.await.unwrap().unwrap();
}

fn change(file: &Path, sql: &str) {
    let db = rusqlite::Connection::open(file).unwrap();
    assert_eq!(db.execute(sql, []).unwrap(), 1, "{sql}");
}

async fn start(server: &Server, id: &str) -> String {
    let args = ["run", "start", "order", "--queue", "orders", "--id", id];
    json(server, &args).await["run_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_run_and_a_schedule_that_cannot_be_read_stop_nobody_and_doctor_names_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kagzi.db");
    let server = Server::start(&file).await;
    let victim = start(&server, "victim").await;
    let neighbour = start(&server, "neighbour").await;
    let every = ["--type", "order", "--queue", "orders", "--every", "1s"];
    for id in ["broken", "sound"] {
        json(&server, &[&["schedule", "create", id], &every[..]].concat()).await;
    }
    server.stop().await;
    // What a newer server may have written, and what no server ever wrote.
    let newer = "UPDATE events SET kinds = x'C8'
                  WHERE first_seq = 1 AND run_id = (SELECT run_id FROM runs WHERE business_id = 'victim')";
    change(&file, newer);
    change(&file, "UPDATE schedules SET plan = '{' WHERE schedule_id = 'broken'");

    // Twice: a restart must not bring it back to life, nor make it stop the others.
    for round in 0..2 {
        let server = Server::start(&file).await;
        with_worker(&server, async {
            json(&server, &["run", "wait", &neighbour]).await;
            let fresh = start(&server, &format!("fresh-{round}")).await;
            json(&server, &["run", "wait", &fresh]).await;
            let scheduled = ["schedule", "trigger", "sound", "--trigger-id", &format!("round-{round}")];
            let run = json(&server, &scheduled).await["run_id"].as_str().unwrap().to_owned();
            json(&server, &["run", "wait", &run]).await;

            let mut diagnosis = String::new();
            for _ in 0..600 {
                let doctor = kagzi(&["--address", &server.address, "-o", "json", "doctor"]).await;
                assert_eq!(doctor.status.code(), Some(1));
                diagnosis = String::from_utf8(doctor.stdout).unwrap();
                if diagnosis.contains(&victim) && diagnosis.contains("schedule 'broken'") {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            assert!(diagnosis.contains(&victim) && diagnosis.contains("kind 200"), "{diagnosis}");
            assert!(diagnosis.contains("schedule 'broken'"), "{diagnosis}");
            let why = json(&server, &["run", "why", &victim]).await.to_string();
            assert!(why.contains("cannot read it"), "{why}");
            let history = json(&server, &["run", "history", &victim]).await.to_string();
            assert!(history.contains("kind 200"), "{history}");
        })
        .await;
        server.stop().await;
    }
}

#[tokio::test]
async fn a_namespace_that_cannot_be_read_leaves_the_list_of_the_others_whole_and_doctor_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kagzi.db");
    let server = Server::start(&file).await;
    for name in ["billing", "broken", "catalogue"] {
        json(&server, &["ns", "create", name]).await;
    }
    server.stop().await;
    change(&file, "UPDATE namespaces SET defaults = '{' WHERE namespace_id = 'broken'");
    let server = Server::start(&file).await;

    let all = json(&server, &["ns", "list"]).await;

    let names = |page: &serde_json::Value| -> Vec<String> {
        let rows = page["namespaces"].as_array().unwrap();
        rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&all), ["billing", "catalogue", "default"]);
    assert_eq!(all["unreadable"], 1, "{all}");
    // One at a time it is a page of its own, without a row, and the next one follows.
    let (mut seen, mut left_out, mut token) = (Vec::new(), 0, String::new());
    loop {
        let page = json(&server, &["ns", "list", "--limit", "1", "--page-token", &token]).await;
        seen.extend(names(&page));
        left_out += page["unreadable"].as_u64().unwrap_or(0);
        match page["next_page_token"].as_str() {
            Some(next) if !next.is_empty() => token = next.to_owned(),
            _ => break,
        }
    }
    assert_eq!((seen, left_out), (names(&all), 1));
    let doctor = kagzi(&["--address", &server.address, "-o", "json", "doctor"]).await;
    let diagnosis = String::from_utf8(doctor.stdout).unwrap();
    assert_eq!(doctor.status.code(), Some(1), "{diagnosis}");
    assert!(diagnosis.contains("the settings of namespace 'broken'"), "{diagnosis}");
    server.kill().await;
}

#[tokio::test]
async fn nobody_can_take_the_id_of_a_failure_handler_or_of_a_scheduled_run() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("kagzi.db")).await;
    let run = start(&server, "risky").await;

    for id in
        [format!("failure-{run}"), format!("system-failure-{run}"), "schedule:x:2026-11-17T23:00:00Z".into()]
    {
        let (code, said) =
            refused(&server, &["run", "start", "order", "--queue", "orders", "--id", &id]).await;
        assert_eq!(code, Some(2), "{said}");
        assert!(
            said.contains("business_id") && said.contains(&id) && said.contains("choose another"),
            "{said}"
        );
    }
    assert_eq!(json(&server, &["run", "list"]).await["runs"].as_array().unwrap().len(), 1);
    server.kill().await;
}
