//! Configuration: one typed struct per section, filled from a file, the environment and flags, in that order.
//!
//! [`Config`] is the one list of what can be set. The file's reader, the environment's names, `kagzi config`
//! and `docs/configuration.md` all follow from it.

mod duration;
mod environment;
mod file;
mod keys;
mod origin;
mod reference;
mod section;
mod sections;
mod suggest;
mod value;

use std::{collections::BTreeMap, path::PathBuf};

use kagzi_engine::Settings;

use crate::{Options, StoreUrl, message_limit::request_bytes_max};

pub use environment::ALIASES;
pub use file::DEFAULT_PLACES;
pub use keys::InvalidSetting;
pub use origin::{ConfigError, Origin, Problem};
pub use reference::{example, page};
pub use section::KeyDoc;
pub use sections::{
    Config, LogFormat, LogSection, NotifySection, PayloadSection, RetentionSection, RetrySection,
    SchedulerSection, ServerSection, StepSection, StoreSection, TraceSection, WorkerSection,
};
pub use value::Ratio;

use section::SetError;
use suggest::nearest;
use value::Raw;

/// Where to look.
#[derive(Debug, Default)]
pub struct Sources {
    /// The file that the user named; it must exist.
    pub file: Option<PathBuf>,
    /// Files that are read when none was named; the first that exists counts.
    pub places: Vec<PathBuf>,
    /// The process's variables.
    pub environment: Vec<(String, String)>,
    /// What was said on the command line.
    pub flags: Vec<FlagValue>,
}

impl Sources {
    /// This process's environment and the default places.
    pub fn of_process() -> Sources {
        Sources {
            places: DEFAULT_PLACES.iter().map(PathBuf::from).collect(),
            // A variable that is not text cannot be one of ours.
            environment: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
            ..Sources::default()
        }
    }
}

/// A value from the command line.
#[derive(Debug, Clone)]
pub struct FlagValue {
    /// `--listen`
    pub flag: String,
    /// `server.address`
    pub key: String,
    pub value: String,
}

/// Effective values, and where each came from.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub config: Config,
    /// The file that was read.
    pub file: Option<PathBuf>,
    origins: BTreeMap<String, Origin>,
}

/// One value, as people are shown it.
#[derive(Debug, Clone)]
pub struct Effective {
    pub key: KeyDoc,
    /// Secrets are masked; null = not set.
    pub value: serde_json::Value,
    pub origin: Origin,
}

impl Loaded {
    /// Reads every source and checks the result. All problems are found, not only the first.
    pub fn load(sources: Sources) -> Result<Loaded, ConfigError> {
        let mut loaded = Loaded { config: Config::default(), file: None, origins: BTreeMap::new() };
        let mut problems = Vec::new();
        match file::read(&sources) {
            Ok(Some(file)) => {
                for entry in file.entries {
                    problems.extend(loaded.set(&entry.key, &entry.value, entry.origin));
                }
                problems.extend(file.problems);
                loaded.file = Some(file.path);
            }
            Ok(None) => {}
            Err(problem) => problems.push(problem),
        }
        for entry in environment::entries(&sources.environment) {
            problems.extend(loaded.set(
                &entry.key,
                &Raw::Text(entry.value),
                Origin::Environment(entry.variable),
            ));
        }
        for flag in sources.flags {
            problems.extend(loaded.set(&flag.key, &Raw::Text(flag.value), Origin::Flag(flag.flag)));
        }
        // Rules between values would only repeat what is known to be wrong already.
        if problems.is_empty()
            && let Err(broken) = loaded.config.check()
        {
            let origin = loaded.origin(&broken.key);
            problems.push(Problem { key: broken.key, origin, message: broken.rule });
        }
        if problems.is_empty() { Ok(loaded) } else { Err(ConfigError { problems }) }
    }

    /// Every value, in the order of the sections.
    pub fn values(&self) -> Vec<Effective> {
        let one = |(key, value): (KeyDoc, serde_json::Value)| {
            let origin = self.origin(&key.path());
            Effective { key, value, origin }
        };
        self.config.values().into_iter().map(one).collect()
    }

    /// Where a value came from.
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::Default)
    }

    fn set(&mut self, key: &str, value: &Raw, origin: Origin) -> Option<Problem> {
        let message = match self.config.set(key, value) {
            Ok(()) => {
                self.origins.insert(key.to_owned(), origin);
                return None;
            }
            Err(SetError::Invalid(message)) => message,
            Err(SetError::Unknown) => unknown(key),
        };
        Some(Problem { key: key.to_owned(), origin, message })
    }
}

fn unknown(key: &str) -> String {
    let keys: Vec<String> = Config::keys().iter().map(KeyDoc::path).collect();
    let last = key.rsplit('.').next().unwrap_or(key);
    // A right name in a wrong section is the commoner mistake, so it is looked for first.
    let moved = keys.iter().find(|known| known.rsplit('.').next() == Some(last)).cloned();
    match moved.or_else(|| nearest(key, &keys)) {
        Some(known) => format!("there is no such key; did you mean {known}?"),
        None => "there is no such key; `kagzi config example` lists all of them".into(),
    }
}

impl Config {
    /// Rules that a value alone cannot break.
    fn check(&self) -> Result<(), InvalidSetting> {
        self.store.check()?;
        self.settings().check()?;
        self.notify.settings().check()?;
        self.server.edge().check(request_bytes_max(self.payload.max_size_bytes))
    }

    /// How to run a server on this store.
    pub fn options(&self, store: StoreUrl) -> Options {
        Options {
            listen: self.server.address,
            store,
            insecure: self.server.insecure,
            edge: self.server.edge(),
            database: self.store.database(),
            trace: self.trace.settings(),
            notify: self.notify.settings(),
            settings: self.settings(),
        }
    }

    /// What the engine is told.
    pub fn settings(&self) -> Settings {
        // Field by field and without `..`: a new setting does not compile until it can be configured.
        Settings {
            heartbeat_interval: self.worker.heartbeat_interval,
            stale_after: self.worker.stale_after,
            lease: self.worker.lease,
            payload_warn_bytes: self.payload.warn_threshold_bytes,
            payload_max_bytes: self.payload.max_size_bytes,
            wait_max: self.server.wait_max,
            step_concurrency_max: self.step.concurrency_max,
            start_to_close: self.step.start_to_close,
            retry: self.retry.policy(),
            create_namespaces: self.server.create_namespaces,
            namespaces_made_max: self.server.namespaces_made_max,
            workers_online_max: self.worker.online_max,
            schedules_max: self.scheduler.schedules_max,
            reconnect_grace: self.worker.reconnect_grace,
            worker_losses_max: self.worker.losses_max,
            forget_workers_after: self.worker.forget_after,
            retention: Some(self.retention.finished_runs).filter(|keep| !keep.is_zero()),
            scheduler: kagzi_engine::SchedulerSettings {
                interval: std::time::Duration::from_secs(self.scheduler.interval_secs),
                batch_size: self.scheduler.batch_size,
                max_workflows_per_tick: self.scheduler.max_workflows_per_tick,
            },
        }
    }
}

#[cfg(test)]
mod tests;
