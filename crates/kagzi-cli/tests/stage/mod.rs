//! The real program, as a server that ends with its test and as a command whose answer is read.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};

/// Generous: the machine may be busy with other tests.
pub const DEADLINE: Duration = Duration::from_secs(120);

pub struct Server {
    process: Child,
    pub address: String,
    /// The server ends when this closes, also when the test is killed.
    _lifeline: ChildStdin,
}

impl Server {
    /// A server on any free port with its data in `file`.
    pub async fn start(file: &Path) -> Server {
        Server::start_at(file, "127.0.0.1:0").await
    }

    /// The same at an address.
    pub async fn start_at(file: &Path, listen: &str) -> Server {
        let mut process = Command::new(env!("CARGO_BIN_EXE_kagzi"))
            .args(["serve", "--listen", listen, "--until-stdin-closes", "--store"])
            .arg(format!("sqlite:{}", file.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lifeline = process.stdin.take().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let announced = tokio::time::timeout(DEADLINE, async {
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some(address) = line.strip_prefix("listening on ") {
                    return address.to_owned();
                }
            }
            panic!("the server ended before it was ready");
        });
        let address = announced.await.expect("the server becomes ready");
        Server { process, address, _lifeline: lifeline }
    }

    /// A clean stop, after which everything is in the one file.
    #[allow(dead_code, reason = "most tests need no clean stop")]
    pub async fn stop(mut self) {
        drop(self._lifeline);
        let status =
            tokio::time::timeout(DEADLINE, self.process.wait()).await.expect("the server ends").unwrap();
        assert!(status.success(), "{status}");
    }

    pub async fn kill(mut self) {
        self.process.kill().await.unwrap();
    }
}

/// Runs a command to its end.
pub async fn kagzi(args: &[&str]) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_kagzi")).args(args).stdin(Stdio::null()).output();
    tokio::time::timeout(DEADLINE, command).await.expect("the command ends").unwrap()
}

/// What a command printed, which must have succeeded.
#[track_caller]
pub fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What a command complained about.
pub fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The answer of a command as JSON.
#[allow(dead_code, reason = "not every test reads JSON")]
pub async fn json(server: &Server, args: &[&str]) -> serde_json::Value {
    let said = kagzi(&[&["--address", &server.address, "-o", "json"], args].concat()).await;
    serde_json::from_str(&printed(&said)).unwrap()
}

/// The exit code and the complaint of a command that is refused.
#[allow(dead_code, reason = "not every test is refused")]
pub async fn refused(server: &Server, args: &[&str]) -> (Option<i32>, String) {
    let said = kagzi(&[&["--address", &server.address], args].concat()).await;
    (said.status.code(), complaint(&said))
}
