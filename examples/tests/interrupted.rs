//! The README says "kill your program while that order sleeps": Ctrl-C has to be enough for that. The program
//! is the real one, in a process of its own, against a real server.

use std::{net::SocketAddr, process::Stdio, time::Duration};

use kagzi_server::{
    Options, Server, StoreUrl,
    config::{Loaded, Sources},
};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    sync::oneshot,
};
use tokio_util::sync::CancellationToken;

/// A busy machine gets its time; a program that does not listen never ends.
const SOON: Duration = Duration::from_secs(60);

struct Program {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(address: SocketAddr) -> Program {
        let mut child = Command::new(env!("CARGO_BIN_EXE_readme"))
            .env("KAGZI_ADDRESS", address.to_string())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Program { child, lines }
    }

    async fn line(&mut self) -> Option<String> {
        tokio::time::timeout(SOON, self.lines.next_line()).await.expect("it says something or ends").unwrap()
    }

    /// Tells it to end, as a terminal or an operator does, and waits until it has.
    async fn ended_by(mut self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id().unwrap().cast_signed()).unwrap(), signal).unwrap();
        let ended = tokio::time::timeout(SOON, self.child.wait()).await;
        let status = ended.unwrap_or_else(|_| panic!("it goes on after {signal:?}")).unwrap();
        assert!(status.success(), "{status}");
    }
}

#[tokio::test]
async fn the_readmes_program_ends_on_ctrl_c_and_the_next_one_goes_on_with_its_order() {
    let dir = tempfile::tempdir().unwrap();
    let config = Loaded::load(Sources::default()).unwrap().config;
    let options = Options {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        ..config.options(StoreUrl::Sqlite(dir.path().join("kagzi.db")))
    };
    let (told, ready) = oneshot::channel();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(Server::serve(options, |address| told.send(address).unwrap(), stop.clone()));
    let address = ready.await.unwrap();

    let mut first = Program::start(address);
    assert_eq!(first.line().await.as_deref(), Some("charging"));
    first.ended_by(Signal::INT).await;
    // The same order goes on, and nothing is charged a second time.
    let mut last = Program::start(address);
    assert_eq!(last.line().await.as_deref(), Some("paid, tea sent"));
    assert_eq!(last.line().await, None);
    assert!(last.child.wait().await.unwrap().success());

    stop.cancel();
    serving.await.unwrap().unwrap();
}
