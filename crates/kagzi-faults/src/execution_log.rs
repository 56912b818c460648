//! What really happened: one line per execution, written by the worker processes themselves.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

/// How far an execution came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    Began,
    /// The deduplicating sink had not seen the key before.
    Effect,
    /// About to return its result.
    Ended,
}

/// One line: a real execution of a step, in one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Execution {
    pub phase: Phase,
    pub run: String,
    pub step: String,
    pub attempt: u32,
    pub key: String,
    pub pid: u32,
    pub nonce: String,
}

/// The log, the sink and the gates of one stage: plain files that outlive every process.
#[derive(Debug, Clone)]
pub struct ExecutionLog {
    dir: PathBuf,
}

impl ExecutionLog {
    pub fn open(dir: &Path) -> ExecutionLog {
        ExecutionLog { dir: dir.to_owned() }
    }

    /// O_APPEND and one write: lines of several processes never mix.
    pub fn append(&self, execution: &Execution) -> anyhow::Result<()> {
        let mut line = serde_json::to_string(execution)?;
        line.push('\n');
        let mut file = File::options().create(true).append(true).open(self.dir.join("executions.log"))?;
        Ok(file.write_all(line.as_bytes())?)
    }

    /// Everything so far, in order.
    pub fn read(&self) -> Vec<Execution> {
        let text = fs::read_to_string(self.dir.join("executions.log")).unwrap_or_default();
        // A line without its end is still being written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).expect("workers write whole lines")).collect()
    }

    /// The executions of a step that began.
    pub fn began(&self, run: &str, step: &str) -> Vec<Execution> {
        self.of(run, step, Phase::Began)
    }

    pub fn of(&self, run: &str, step: &str, phase: Phase) -> Vec<Execution> {
        let wanted = |e: &Execution| e.run == run && e.step == step && e.phase == phase;
        self.read().into_iter().filter(wanted).collect()
    }

    /// The deduplicating receiver: true when this is the first time that it sees the key.
    pub fn sink(&self, key: &str) -> anyhow::Result<bool> {
        fs::create_dir_all(self.dir.join("sink"))?;
        match File::create_new(self.effect(key)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the sink has seen the key. The log alone cannot tell: a process may die between the two.
    pub fn sank(&self, key: &str) -> bool {
        self.effect(key).exists()
    }

    fn effect(&self, key: &str) -> PathBuf {
        self.dir.join("sink").join(key.replace(['/', ':'], "_"))
    }

    pub fn open_gate(&self, name: &str) {
        File::create(self.gate(name)).expect("the stage's directory can be written");
    }

    pub fn gate_is_open(&self, name: &str) -> bool {
        self.gate(name).exists()
    }

    /// A workflow function says that it has come to a gate.
    pub fn wait_at(&self, name: &str) -> anyhow::Result<()> {
        File::create(self.dir.join(format!("waits-at-{name}")))?;
        Ok(())
    }

    /// Whether a workflow function has come to the gate.
    pub fn waits_at(&self, name: &str) -> bool {
        self.dir.join(format!("waits-at-{name}")).exists()
    }

    fn gate(&self, name: &str) -> PathBuf {
        self.dir.join(format!("gate-{name}"))
    }
}
