//! Data goes to stdout, messages for people to stderr.

use crate::terminal::{Styles, harmless, harmless_json};
use serde::Serialize;
use std::io::{IsTerminal, Write};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Table,
    Json,
}

/// Prints data. `println!` would panic when the reader has left (`kagzi run list | head -1`).
pub fn print(data: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{}", harmless(data, styles(&stdout)))?;
    stdout.flush()?;
    Ok(())
}

pub fn print_json(data: &impl Serialize) -> anyhow::Result<()> {
    print(&json(data))
}

/// One line per value, for streams of them.
pub fn print_json_line(data: &impl Serialize) -> anyhow::Result<()> {
    let json = serde_json::to_string(data).expect("views have string keys and no failing serializers");
    print(&harmless_json(&json))
}

pub fn json(data: &impl Serialize) -> String {
    let json = serde_json::to_string_pretty(data).expect("views have string keys and no failing serializers");
    harmless_json(&json).into_owned()
}

/// Says something to the person in front of the terminal.
pub fn note(message: &str) {
    eprintln!("{}", harmless(message, styles(&std::io::stderr())));
}

/// Says how to read on in a list, and back.
pub fn note_pages(next: Option<&str>, prev: Option<&str>) {
    if let Some(token) = next {
        note(&format!("more with: --page-token {token} (and the same filters)"));
    }
    if let Some(token) = prev {
        note(&format!("back with: --page-token {token} (and the same filters)"));
    }
}

/// Our own colours are obeyed where they are wanted; a pipe gets none.
pub fn styles(stream: &impl IsTerminal) -> Styles {
    if wants_colours(stream) { Styles::Allowed } else { Styles::Escaped }
}

/// Whether a stream is a terminal that wants colours (<https://no-color.org>).
pub fn wants_colours(stream: &impl IsTerminal) -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && stream.is_terminal()
}
