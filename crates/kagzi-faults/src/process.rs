//! One child process, hurt by its own id only and never left behind.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdin, Command},
};

use crate::wait::DEADLINE;

pub struct Process {
    child: Child,
    pid: u32,
    log: PathBuf,
    /// The child ends when this closes, so it cannot outlive a test process that was killed.
    _lifeline: Option<ChildStdin>,
}

impl Process {
    /// Starts a program; what it says on stderr is appended to `log`.
    pub fn spawn(program: &str, args: &[String], log: &Path) -> Process {
        let stderr = File::options().create(true).append(true).open(log).expect("the stage can be written");
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| {
                panic!("could not start {program}: {error}; scripts/test.sh installs what tests need")
            });
        let pid = child.id().expect("a child that nobody has waited for has a pid");
        let lifeline = child.stdin.take();
        Process { child, pid, log: log.to_owned(), _lifeline: lifeline }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The rest of the first line on stdout that begins with `prefix`; none when the process ends before.
    pub async fn announced(&mut self, prefix: &str) -> Option<String> {
        let mut lines = BufReader::new(self.child.stdout.take().expect("asked once")).lines();
        let found = async {
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some(rest) = line.strip_prefix(prefix) {
                    return Some(rest.to_owned());
                }
            }
            None
        };
        tokio::time::timeout(DEADLINE, found).await.expect("a process announces itself or ends")
    }

    /// SIGKILL, and waits until it is gone.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("an own child can be killed");
    }

    /// SIGSTOP: it neither runs nor ends.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT.
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// SIGTERM.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Waits for the end that something else has caused.
    pub async fn ended(&mut self) -> ExitStatus {
        let ended = tokio::time::timeout(DEADLINE, self.child.wait()).await;
        ended.unwrap_or_else(|_| panic!("process {} does not end\n{}", self.pid, self.said())).unwrap()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("an own child can be asked").is_none()
    }

    /// All that it, and others with the same log, said.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Memory in KiB by its name in `/proc/PID/status`: `VmRSS` now, `VmHWM` at its peak.
    pub fn memory_kib(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).expect("it runs");
        let line = status.lines().find(|line| line.starts_with(name)).expect("Linux tells");
        line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number of KiB")
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid.cast_signed()).expect("a child's pid is positive");
        kill_process(pid, signal).expect("an own child takes signals");
    }
}

/// For the children's `main`: ends the process when the test that started it is gone.
pub fn exit_when_stdin_closes() {
    std::thread::Builder::new()
        .name("lifeline".into())
        .spawn(|| {
            // Whether stdin ended or broke, nobody is there any more.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            std::process::exit(70);
        })
        .expect("a process that has just started can start a thread");
}
