//! `kagzi run replay` against a real server, by the real program.

use std::{
    io::{BufRead, BufReader},
    process::{Child, ChildStdin, Command, Stdio},
};

use serde_json::Value;

/// A server in memory that ends with the test.
struct Server {
    address: String,
    process: Child,
    _lifeline: Option<ChildStdin>,
}

impl Server {
    fn start() -> Server {
        let mut process = Command::new(env!("CARGO_BIN_EXE_kagzi"))
            .args(["serve", "--store", "memory:", "--listen", "127.0.0.1:0", "--until-stdin-closes"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lifeline = process.stdin.take();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let address = lines.find_map(|line| line.strip_prefix("listening on ").map(str::to_owned));
        Server { address: address.expect("it says where it listens"), process, _lifeline: lifeline }
    }

    fn kagzi(&self, args: &[&str]) -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kagzi"));
        let said = command.args(["--address", &self.address, "-o", "json"]).args(args).output().unwrap();
        assert!(said.status.success(), "{args:?}: {said:?}");
        serde_json::from_slice(&said.stdout).unwrap()
    }

    /// A run of this type that somebody gave up.
    fn failed(&self, workflow_type: &str) {
        let started = self.kagzi(&["run", "start", workflow_type]);
        self.kagzi(&["run", "terminate", started["run_id"].as_str().unwrap()]);
    }

    fn count(&self, workflow_type: &str, status: &str) -> usize {
        let page = self.kagzi(&["run", "list", "--type", workflow_type, "--status", status]);
        page["runs"].as_array().unwrap().len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn failed_runs_are_counted_first_and_then_replayed_by_filter() {
    let server = Server::start();
    for workflow_type in ["order", "order", "order", "invoice"] {
        server.failed(workflow_type);
    }
    let filter = ["run", "replay", "--type", "order", "--error-code", "TERMINATED"];

    let counted = server.kagzi(&[&filter[..], &["--dry-run"]].concat());
    assert_eq!((&counted["matching"], &counted["replayed"]), (&3.into(), &0.into()));
    assert_eq!(server.count("order", "failed"), 3, "a dry run changes nothing");

    let replayed = server.kagzi(&[&filter[..], &["--limit", "2"]].concat());
    assert_eq!((&replayed["matching"], &replayed["replayed"]), (&2.into(), &2.into()));
    assert_eq!((server.count("order", "failed"), server.count("order", "pending")), (1, 2));

    let restarted = server.kagzi(&[&filter[..], &["--how", "restart"]].concat());
    assert_eq!(restarted["replayed"], 1);
    assert_eq!((server.count("order", "failed"), server.count("order", "pending")), (1, 3));
    assert_eq!(server.count("invoice", "failed"), 1, "others are left alone");
}
