//! What is said about the configuration: a file to start from, and the reference in the documentation.

use std::fmt::Write;

use serde_json::Value;

use super::{ALIASES, Config, KeyDoc};

/// A file with every key and its default, all of it commented out: uncomment what you change.
pub fn example() -> String {
    let mut text = String::from(
        "# Configuration of `kagzi serve` and `kagzi dev`. Every key is optional; the values here are the \
         defaults.\n\
         # Variables (KAGZI__SECTION__KEY) win over this file, flags win over both.\n",
    );
    for (section, about) in Config::sections() {
        text.push('\n');
        about.iter().for_each(|line| write_line(&mut text, &format!("#{line}")));
        write_line(&mut text, &format!("[{section}]"));
        for (key, value) in of_section(section) {
            key.about.iter().for_each(|line| write_line(&mut text, &format!("#{line}")));
            let value = if value.is_null() { placeholder(&key) } else { literal(&value) };
            write_line(&mut text, &format!("# {} = {value}", key.name));
        }
    }
    text
}

/// The generated part of docs/configuration.md.
pub fn page() -> String {
    let mut text = String::new();
    for (section, about) in Config::sections() {
        write_line(&mut text, &format!("### [{section}]\n\n{}\n", joined(about)));
        text.push_str("| key | default | variable | |\n|---|---|---|---|\n");
        for (key, value) in of_section(section) {
            let default = if value.is_null() { "not set".into() } else { format!("`{}`", literal(&value)) };
            let path = key.path();
            let mut variables = format!("`{}`", key.variable());
            for (alias, _) in ALIASES.iter().filter(|(_, aliased)| *aliased == path) {
                write!(variables, ", `{alias}`").expect("a String takes all");
            }
            let about = joined(key.about);
            write_line(&mut text, &format!("| `{}` | {default} | {variables} | {about} |", key.name));
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text
}

fn of_section(section: &str) -> Vec<(KeyDoc, Value)> {
    Config::default().values().into_iter().filter(|(key, _)| key.section == section).collect()
}

fn joined(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// A value as TOML writes it. JSON's scalars and lists are TOML's, too.
fn literal(value: &Value) -> String {
    value.to_string()
}

/// For a key that is not set: what holds then, as its documentation says, or something of the right form.
fn placeholder(key: &KeyDoc) -> String {
    let about = joined(key.about);
    let standard = about.split("When not set: ").nth(1).and_then(|rest| rest.split(' ').next());
    let standard = standard.map(|word| word.trim_end_matches('.'));
    match (key.path().as_str(), standard) {
        ("trace.otlp_endpoint", _) => "\"http://127.0.0.1:4317\"".into(),
        ("store.url", _) => "\"sqlite:/var/lib/kagzi/kagzi.db\"".into(),
        (_, Some(word)) if key.expected.contains("duration") => format!("\"{word}\""),
        (_, Some(word)) => word.to_owned(),
        (_, None) => "\"\"".into(),
    }
}

fn write_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}
