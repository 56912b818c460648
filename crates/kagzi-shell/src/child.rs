//! Processes that `demo` and `bench` start: this same binary with another verb, and never left behind.

use crate::address::Address;
use anyhow::{Context, anyhow, bail};
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{ChildStdin, Command};

/// What `kagzi serve` prints before its address when it accepts calls. `demo`, `bench` and scripts wait for
/// this line; its form is a contract.
pub const LISTENING: &str = "listening on ";

/// Opening a new SQLite file takes milliseconds; a machine under load may need a while to start a process.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

const LOG_TAIL_LINES: usize = 5;

pub struct Child {
    role: &'static str,
    process: tokio::process::Child,
    pid: u32,
    log: PathBuf,
    /// The child stops when this closes, so it cannot outlive us even if we are killed. Held here and not in
    /// `process`, because tokio closes that one as soon as somebody waits for the child.
    _lifeline: Option<ChildStdin>,
}

impl Child {
    /// Starts this binary with `args`; what it says on stderr goes to `dir/ROLE.log`.
    pub fn spawn<S: AsRef<OsStr>>(
        role: &'static str,
        args: impl IntoIterator<Item = S>,
        dir: &Path,
    ) -> anyhow::Result<Self> {
        let log = dir.join(format!("{role}.log"));
        let log_file = File::options().create(true).append(true).open(&log);
        let log_file = log_file.with_context(|| format!("could not write {}", log.display()))?;
        let binary = std::env::current_exe().context("could not find this program's own file")?;
        let mut process = Command::new(binary)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log_file)
            // A group of its own: Ctrl-C is for us, we decide in which order the children end.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("could not start the {role} process"))?;
        let lifeline = process.stdin.take();
        let pid = process.id().expect("a child that nobody has waited for has a pid");
        Ok(Child { role, process, pid, log, _lifeline: lifeline })
    }

    /// Starts a server on any free port and waits until it accepts calls.
    pub async fn server(store: &str, dir: &Path) -> anyhow::Result<(Self, Address)> {
        let args = ["serve", "--store", store, "--listen", "127.0.0.1:0", "--until-stdin-closes"];
        let mut server = Child::spawn("server", args, dir)?;
        let address = tokio::time::timeout(READY_TIMEOUT, server.announced_address())
            .await
            .map_err(|_| anyhow!("the server did not become ready{}", server.last_words()))??;
        Ok((server, address))
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Awaits `work`, unless the child ends first, which then is the error.
    pub async fn watch<T>(&mut self, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        tokio::select! {
            done = work => done,
            ended = self.process.wait() => {
                let how = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
                Err(anyhow!("the {} process ended early, {how}{}", self.role, self.last_words()))
            }
        }
    }

    /// SIGKILL, and waits until it is gone.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        self.process
            .kill()
            .await
            .with_context(|| format!("could not kill {} process {}", self.role, self.pid))
    }

    async fn announced_address(&mut self) -> anyhow::Result<Address> {
        let address = self.says(LISTENING).await?;
        address.parse().map_err(|error| anyhow!("the server announced `{address}`: {error}"))
    }

    /// Waits for a line on the child's stdout that begins so, and answers with the rest of it. Can be asked
    /// once.
    pub async fn says(&mut self, prefix: &str) -> anyhow::Result<String> {
        self.says_often(prefix, 1).await
    }

    /// Waits for so many such lines, and answers with the rest of the last one. Can be asked once.
    pub async fn says_often(&mut self, prefix: &str, times: u64) -> anyhow::Result<String> {
        let stdout =
            self.process.stdout.take().with_context(|| format!("the {} was heard before", self.role))?;
        let mut lines = BufReader::new(stdout).lines();
        let mut heard = 0;
        while let Some(line) = lines.next_line().await? {
            if let Some(rest) = line.strip_prefix(prefix) {
                heard += 1;
                if heard == times {
                    return Ok(rest.to_owned());
                }
            }
        }
        bail!("the {} process ended before it said `{}`{}", self.role, prefix.trim(), self.last_words())
    }

    fn last_words(&self) -> String {
        // Without a readable log there is nothing to quote; the error it would explain is reported anyway.
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        let tail = &lines[lines.len().saturating_sub(LOG_TAIL_LINES)..];
        tail.iter().map(|line| format!("\n  {}: {line}", self.role)).collect()
    }
}
