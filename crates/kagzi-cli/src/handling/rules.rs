//! A file of rules about failures: `[[rule]]` tables.

use std::path::PathBuf;

use anyhow::Context;
use kagzi_model::{HandlingRule, check_rules};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rule: Vec<HandlingRule>,
}

/// The rules of the file, or none without one.
pub fn read(path: Option<&PathBuf>) -> anyhow::Result<Vec<HandlingRule>> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("could not read {shown}"))?;
    let File { rule } = toml::from_str(&text).with_context(|| format!("{shown} is no list of rules"))?;
    check_rules(&rule).with_context(|| format!("{shown} cannot be used"))?;
    Ok(rule)
}
