//! Structured logs, read from the output of real programs: the server's, and a worker's in this process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use kagzi::{Client, RetryPolicy, Worker, WorkflowContext};
use serde_json::Value;

/// A server process that is ended with the test.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(directory: &tempfile::TempDir) -> Server {
        let mut process = Command::new(env!("CARGO_BIN_EXE_kagzi"))
            .args(["serve", "--store", "sqlite:kagzi.db", "--listen", "127.0.0.1:0", "--log-format", "json"])
            .args(["--set", "log.level=debug", "--until-stdin-closes"])
            .current_dir(directory.path())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").expect("the server serves").to_owned();
        Server { process, address }
    }

    /// Ends it and answers with what it said.
    fn lines(mut self) -> Vec<Value> {
        drop(self.process.stdin.take());
        let output = self.process.wait_with_output().unwrap();
        json_lines(&String::from_utf8(output.stderr).unwrap())
    }
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect()
}

/// What this process logs.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

async fn order(ctx: WorkflowContext, _: ()) -> anyhow::Result<()> {
    let policy = RetryPolicy {
        initial_interval: Some(std::time::Duration::from_millis(10)),
        ..RetryPolicy::default()
    };
    ctx.step("charge")
        .retry_policy(policy)
        .retries(2)
        .run(|step| async move {
            tracing::info!("charging");
            anyhow::ensure!(step.attempt() > 1, "the bank is away");
            Ok(())
        })
        .await?;
    anyhow::bail!("nothing left to ship")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_line_about_a_run_names_namespace_and_run_and_a_steps_lines_its_attempt_and_worker() {
    let captured = Captured::default();
    let writer = captured.clone();
    tracing_subscriber::fmt().json().with_writer(move || writer.clone()).init();
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory);
    let mut worker = Worker::builder(server.address.as_str(), "orders").build().await.unwrap();
    worker.register("order", order);
    let stop = worker.shutdown_token();
    let working = tokio::spawn(worker.run());
    let client = Client::connect(server.address.as_str()).await.unwrap();

    let run = client.workflow("order", "orders", ()).await.unwrap();
    let id = run.run_id().to_owned();
    run.result::<()>().await.expect_err("it fails");
    stop.cancel();
    working.await.unwrap().unwrap();

    let said = server.lines();
    let about: Vec<&Value> = said.iter().filter(|line| line.get("run").is_some()).collect();
    assert!(about.iter().all(|line| line["namespace"] == "default"), "{about:#?}");
    let ended =
        about.iter().find(|line| line["message"] == "run ended badly").expect("the failure is logged");
    assert_eq!((ended["run"].as_str(), ended["outcome"].as_str()), (Some(id.as_str()), Some("FAILED")));
    assert_eq!((ended["workflow_type"].as_str(), ended["level"].as_str()), (Some("order"), Some("INFO")));

    let ours = json_lines(&String::from_utf8(captured.0.lock().unwrap().clone()).unwrap());
    let step_of = |line: &Value| {
        let spans = line["spans"].as_array().cloned().unwrap_or_default();
        spans.into_iter().find(|span| span["name"] == "step").expect("the line stands in a step")
    };
    let charging: Vec<Value> =
        ours.iter().filter(|line| line["fields"]["message"] == "charging").map(step_of).collect();
    assert_eq!(charging.len(), 2);
    for (span, attempt) in charging.iter().zip([1, 2]) {
        assert_eq!((span["run"].as_str(), span["step"].as_str()), (Some(id.as_str()), Some("charge")));
        assert_eq!(span["attempt"], attempt);
        assert!(span["worker"].as_str().is_some_and(|worker| worker.len() == 36), "{span}");
    }
    let retried =
        ours.iter().find(|line| line["fields"]["message"] == "step failed, will be retried").unwrap();
    assert!(retried["fields"]["delay_ms"].is_i64() || retried["fields"]["delay_ms"].is_u64(), "{retried}");
    assert_eq!(step_of(retried)["attempt"], 1);
}

#[tokio::test]
async fn a_payload_above_a_mebibyte_is_taken_and_warned_about_with_its_field_and_size() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory);
    let client = Client::connect(server.address.as_str()).await.unwrap();

    client.workflow("order", "orders", "x".repeat(1024 * 1024 - 2)).await.unwrap();
    client.workflow("order", "orders", "x".repeat(1024 * 1024 - 1)).await.unwrap();

    let said = server.lines();
    let warned: Vec<&Value> =
        said.iter().filter(|line| line["level"] == "WARN" && line["size_bytes"].is_u64()).collect();
    let [line] = warned.as_slice() else { panic!("{warned:#?}") };
    assert_eq!((&line["context"], &line["size_bytes"]), (&"input".into(), &(1024 * 1024 + 1).into()));
    let message = "payload exceeds 1048576 bytes; consider storing large data externally";
    assert_eq!(line["message"], message);
}
