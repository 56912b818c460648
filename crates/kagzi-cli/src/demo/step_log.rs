use anyhow::Context;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

const POLL: Duration = Duration::from_millis(25);

/// A file outside of Kagzi in which each real execution of a step leaves a line: `STEP PID`.
pub struct StepLog {
    path: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    pub step: String,
    pub pid: u32,
}

impl StepLog {
    pub fn in_dir(dir: &Path) -> Self {
        StepLog { path: dir.join("steps.log") }
    }

    pub fn append(&self, step: &str, pid: u32) -> anyhow::Result<()> {
        let file = File::options().create(true).append(true).open(&self.path);
        // One write of one line: a reader never sees half of it.
        file.and_then(|mut file| file.write_all(format!("{step} {pid}\n").as_bytes()))
            .with_context(|| format!("could not write {}", self.path.display()))
    }

    pub fn executions(&self) -> anyhow::Result<Vec<Execution>> {
        let text = match std::fs::read_to_string(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read.with_context(|| format!("could not read {}", self.path.display()))?,
        };
        text.lines().map(parse).collect()
    }

    pub fn executions_of(&self, step: &str) -> anyhow::Result<Vec<Execution>> {
        Ok(self.executions()?.into_iter().filter(|execution| execution.step == step).collect())
    }

    /// Waits until process `pid` has begun `step`.
    pub async fn begun(&self, step: &str, pid: u32, patience: Duration) -> anyhow::Result<()> {
        let deadline = Instant::now() + patience;
        loop {
            if self.executions_of(step)?.iter().any(|execution| execution.pid == pid) {
                return Ok(());
            }
            anyhow::ensure!(
                Instant::now() < deadline,
                "worker {pid} did not begin step `{step}` within {} s",
                patience.as_secs()
            );
            tokio::time::sleep(POLL).await;
        }
    }
}

fn parse(line: &str) -> anyhow::Result<Execution> {
    let (step, pid) =
        line.split_once(' ').with_context(|| format!("unexpected line `{line}` in the step log"))?;
    Ok(Execution { step: step.to_owned(), pid: pid.parse().context("a pid is a number")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_read_back_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let log = StepLog::in_dir(dir.path());
        assert_eq!(log.executions().unwrap(), []);

        log.append("reserve", 11).unwrap();
        log.append("ship", 11).unwrap();
        log.append("ship", 22).unwrap();

        let ship = |pid| Execution { step: "ship".into(), pid };
        assert_eq!(log.executions_of("ship").unwrap(), [ship(11), ship(22)]);
        assert_eq!(log.executions().unwrap().len(), 3);
    }

    #[tokio::test]
    async fn waiting_ends_with_an_error_when_nothing_comes() {
        let dir = tempfile::tempdir().unwrap();

        let error = StepLog::in_dir(dir.path()).begun("ship", 1, Duration::ZERO).await.unwrap_err();

        assert!(error.to_string().contains("`ship`"), "{error}");
    }
}
