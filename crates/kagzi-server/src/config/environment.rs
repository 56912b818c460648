//! The environment: `KAGZI__SECTION__KEY`, and the names that were there before.

/// Names that are not of that form. They are older than the rule, or come from the first plans.
pub const ALIASES: [(&str, &str); 5] = [
    ("KAGZI_STORE", "store.url"),
    ("RUST_LOG", "log.level"),
    ("KAGZI_SCHEDULER_INTERVAL_SECS", "scheduler.interval_secs"),
    ("KAGZI_SCHEDULER_BATCH_SIZE", "scheduler.batch_size"),
    ("KAGZI_SCHEDULER_MAX_WORKFLOWS_PER_TICK", "scheduler.max_workflows_per_tick"),
];

const PREFIX: &str = "KAGZI__";
/// Everything that begins so is meant for us, too: a misspelt alias must not be passed over in silence.
const SCHEDULER_PREFIX: &str = "KAGZI_SCHEDULER_";

/// A variable that sets a key.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    pub variable: String,
    pub key: String,
    pub value: String,
}

/// The variables that are meant for us, aliases first: the proper name wins. An empty one counts as not set.
pub fn entries(variables: &[(String, String)]) -> Vec<Entry> {
    let entry = |(variable, value): &(String, String)| {
        let key = key(variable)?;
        (!value.is_empty()).then(|| Entry { variable: variable.clone(), key, value: value.clone() })
    };
    let mut entries: Vec<Entry> = variables.iter().filter_map(entry).collect();
    entries.sort_by_key(|entry| (entry.variable.starts_with(PREFIX), entry.variable.clone()));
    entries
}

fn key(variable: &str) -> Option<String> {
    if let Some((_, key)) = ALIASES.iter().find(|(alias, _)| *alias == variable) {
        return Some((*key).to_owned());
    }
    if let Some(name) = variable.strip_prefix(PREFIX) {
        return Some(name.to_lowercase().replace("__", "."));
    }
    let name = variable.strip_prefix(SCHEDULER_PREFIX)?;
    Some(format!("scheduler.{}", name.to_lowercase()))
}
