//! Where the servers of a stage keep their data.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{Evidence, ExecutionLog, check_invariants, check_invariants_on};

#[derive(Debug, Clone)]
pub enum Home {
    /// A SQLite file, for one server. With `KAGZI_FAULTS_STORE=turso` it is Turso that writes it, and SQLite
    /// still checks what was left behind.
    File(PathBuf),
    /// A PostgreSQL database, for any number of them.
    Postgres(String),
}

impl Home {
    /// Makes every run of this namespace that has ended look as if it had ended so much earlier.
    pub fn let_ended_runs_age(&self, namespace: &str, by: Duration) {
        let Home::File(path) = self else { panic!("the ages of runs are changed in files only") };
        let db = rusqlite::Connection::open(path).expect("the file is there");
        let micros = i64::try_from(by.as_micros()).expect("a short time");
        const AGE: &str = "UPDATE runs SET finished_at = finished_at - ?1
            WHERE finished_at IS NOT NULL AND namespace_id = ?2";
        db.execute(AGE, rusqlite::params![micros, namespace]).expect("the server is down");
    }

    /// As `--store` takes it.
    pub fn url(&self) -> String {
        match self {
            Home::File(path) => format!("{}:{}", engine(), path.display()),
            Home::Postgres(url) => url.clone(),
        }
    }

    pub fn file(&self) -> &Path {
        match self {
            Home::File(path) => path,
            Home::Postgres(url) => panic!("{url} is not a file"),
        }
    }

    /// Checks what the servers left behind.
    pub async fn check(&self, log: &ExecutionLog, acknowledged: &[String]) -> Evidence {
        match self {
            Home::File(path) => check_invariants(path, log, acknowledged),
            Home::Postgres(url) => check_invariants_on(url, log, acknowledged).await,
        }
    }
}

fn engine() -> &'static str {
    match std::env::var("KAGZI_FAULTS_STORE").as_deref() {
        Ok("sqlite") | Err(_) => "sqlite",
        Ok("turso") => "turso",
        Ok(other) => panic!("KAGZI_FAULTS_STORE is {other}; write sqlite or turso"),
    }
}
