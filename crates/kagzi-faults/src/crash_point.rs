//! Death at a chosen commit: of the server itself, just before or just after it, or of the worker whose
//! report it is.

use std::{
    fmt,
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};

use clap::ValueEnum;
use rustix::process::{Pid, Signal, getpid, kill_process};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, layer::Context};

/// What the store says around every commit, and under which name.
pub const COMMIT_TARGET: &str = "kagzi::commit";

/// Who dies, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Victim {
    /// The server, when everything is written and nothing is committed.
    ServerBefore,
    /// The server, when it is committed and nobody has heard of it.
    ServerAfter,
    /// The worker, just before the commit: its report counts and it never learns.
    Worker,
}

/// The n-th commit that adds to a history, from 1. Heartbeats and renewed leases do not count: they change
/// nothing that anybody could miss.
#[derive(Debug, Clone, Copy)]
pub struct CrashPoint {
    pub victim: Victim,
    pub commit: u64,
}

impl CrashPoint {
    /// As `fault-server` reads it.
    pub fn args(self) -> Vec<String> {
        let victim = self.victim.to_possible_value().expect("every victim has a name").get_name().to_owned();
        vec!["--crash-at".into(), self.commit.to_string(), "--crash-victim".into(), victim]
    }
}

/// Listens to the store's own log of its commits, so that the store needs no hooks for tests.
pub struct CrashLayer {
    point: CrashPoint,
    /// Holds the worker's process id.
    pid_file: PathBuf,
    commits: AtomicU64,
}

impl CrashLayer {
    pub fn new(point: CrashPoint, pid_file: PathBuf) -> CrashLayer {
        CrashLayer { point, pid_file, commits: AtomicU64::new(0) }
    }

    fn committing(&self) {
        if self.commits.fetch_add(1, Ordering::SeqCst) + 1 != self.point.commit {
            return;
        }
        match self.point.victim {
            Victim::ServerBefore => die(),
            Victim::ServerAfter => {}
            Victim::Worker => {
                let pid = std::fs::read_to_string(&self.pid_file).expect("the test wrote the worker's pid");
                let pid = Pid::from_raw(pid.trim().parse().expect("a number")).expect("above zero");
                // It may have died by itself; then there is nobody to kill.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }

    fn committed(&self) {
        let last = self.commits.load(Ordering::SeqCst);
        if self.point.victim == Victim::ServerAfter && last == self.point.commit {
            die();
        }
    }
}

impl<S: Subscriber> Layer<S> for CrashLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut said = Said::default();
        event.record(&mut said);
        match said.message.as_str() {
            "committing" if said.events > 0 => self.committing(),
            "committed" if said.events > 0 => self.committed(),
            _ => {}
        }
    }
}

#[derive(Default)]
struct Said {
    message: String,
    events: u64,
}

impl Visit for Said {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "events" {
            self.events = value;
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        }
    }
}

/// As `kill -9` would: no destructor runs, nothing is flushed.
fn die() -> ! {
    kill_process(getpid(), Signal::KILL).expect("a process may kill itself");
    loop {
        std::thread::park();
    }
}
