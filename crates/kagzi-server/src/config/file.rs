//! The file: TOML, with the line of every value kept for messages.

use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::{Config, Origin, Problem, Sources, suggest::nearest, value::Raw};

/// Where a file is looked for when none is named.
pub const DEFAULT_PLACES: [&str; 2] = ["kagzi.toml", "/etc/kagzi/kagzi.toml"];

/// A file that was read.
pub struct File {
    pub path: PathBuf,
    pub entries: Vec<Entry>,
    pub problems: Vec<Problem>,
}

/// One value of the file.
pub struct Entry {
    pub key: String,
    pub value: Raw,
    pub origin: Origin,
}

/// Reads the file that the user named, or the first default place that exists.
pub fn read(sources: &Sources) -> Result<Option<File>, Problem> {
    let path = match &sources.file {
        Some(path) => path,
        None => match sources.places.iter().find(|path| path.exists()) {
            Some(path) => path,
            None => return Ok(None),
        },
    };
    let text = std::fs::read_to_string(path).map_err(|error| Problem {
        key: path.display().to_string(),
        origin: Origin::Flag("--config".into()),
        message: format!("could not read the file: {error}"),
    })?;
    parse(path, &text).map(Some)
}

fn parse(path: &Path, text: &str) -> Result<File, Problem> {
    let line = |at: usize| 1 + text[..at.min(text.len())].matches('\n').count();
    let origin = |at: usize| Origin::File { path: path.to_owned(), line: line(at) };
    let table = DeTable::parse(text).map_err(|error| Problem {
        key: "TOML".into(),
        origin: origin(error.span().map_or(0, |span| span.start)),
        message: error.message().to_owned(),
    })?;
    let mut file = File { path: path.to_owned(), entries: Vec::new(), problems: Vec::new() };
    let sections: Vec<String> = Config::sections().iter().map(|(name, _)| (*name).to_owned()).collect();
    for (section, content) in table.get_ref() {
        let (name, at) = (section.get_ref().to_string(), section.span().start);
        let Some(keys) = content.get_ref().as_table() else {
            let message = "keys stand in a section, such as [server]; see `kagzi config example`".to_owned();
            file.problems.push(Problem { key: name, origin: origin(at), message });
            continue;
        };
        if !sections.contains(&name) {
            let message = match nearest(&name, &sections) {
                Some(known) => format!("there is no such section; did you mean [{known}]?"),
                None => format!("there is no such section; there are {}", sections.join(", ")),
            };
            file.problems.push(Problem { key: format!("[{name}]"), origin: origin(at), message });
            continue;
        }
        file.entries.extend(keys.iter().map(|(key, value)| Entry {
            key: format!("{name}.{}", key.get_ref()),
            value: raw(value.get_ref()),
            origin: origin(key.span().start),
        }));
    }
    Ok(file)
}

fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::String(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(Raw::Other("number out of range"), Raw::Integer),
        DeValue::Float(number) => number.as_str().parse().map_or(Raw::Other("number"), Raw::Float),
        DeValue::Boolean(fact) => Raw::Bool(*fact),
        DeValue::Array(items) => Raw::List(items.iter().map(|item| raw(item.get_ref())).collect()),
        DeValue::Datetime(_) => Raw::Other("date"),
        DeValue::Table(_) => Raw::Other("table"),
    }
}
