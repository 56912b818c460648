//! Options of every verb that reads the configuration.

use crate::exit::Trouble;
use kagzi_server::config::{FlagValue, Loaded, Sources};
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct ConfigArgs {
    /// The configuration file. Without it: kagzi.toml in this directory, else /etc/kagzi/kagzi.toml, if there
    /// is one.
    #[arg(long, value_name = "FILE", env = "KAGZI_CONFIG")]
    config: Option<PathBuf>,
    /// Set any key of the configuration, such as worker.lease=60s; may be repeated.
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    set: Vec<String>,
}

impl ConfigArgs {
    /// Reads file, environment and flags. `flags` are those of the verb itself; they win over `--set`.
    pub fn load(self, flags: Vec<FlagValue>) -> anyhow::Result<Loaded> {
        let mut sources = Sources { file: self.config, ..Sources::of_process() };
        for text in self.set {
            let (key, value) = text
                .split_once('=')
                .ok_or_else(|| Trouble::usage(format!("--set {text}: expected SECTION.KEY=VALUE")))?;
            let flag = FlagValue { flag: "--set".into(), key: key.trim().into(), value: value.into() };
            sources.flags.push(flag);
        }
        sources.flags.extend(flags);
        Loaded::load(sources).map_err(|error| Trouble::usage(format!("the configuration is wrong:\n{error}")))
    }
}

/// A flag that sets a key, if it was given.
pub fn flag(flag: &str, key: &str, value: Option<String>) -> Option<FlagValue> {
    value.map(|value| FlagValue { flag: flag.into(), key: key.into(), value })
}
