//! Lines are at most 110 columns wide, comments and documents too: rustfmt does not wrap those.

use crate::none;
use crate::tree::{File, files};

const WIDTH: usize = 110;

/// YAML is left out: a value of the alerts is one line by its syntax.
const ENDINGS: [&str; 6] = [".rs", ".md", ".proto", ".sql", ".sh", ".py"];

/// A row of a Markdown table cannot be broken, an address neither, and a migration is never edited again.
fn may_be_wide(file: &File, line: &str) -> bool {
    let text = line.trim_start().trim_start_matches("//!").trim_start_matches("///").trim_start();
    let is_row = !file.path.ends_with(".sh") && text.starts_with('|');
    is_row || line.contains("://") || file.path.contains("/migrations/")
}

#[test]
fn no_line_is_wider_than_110_columns() {
    let files = files(&ENDINGS).into_iter();
    let wide = files.flat_map(|file| {
        let lines = file.text.lines().enumerate();
        let wide = lines.filter(|(_, line)| line.chars().count() > WIDTH && !may_be_wide(&file, line));
        wide.map(|(n, line)| format!("{}:{}: {} columns", file.path, n + 1, line.chars().count()))
            .collect::<Vec<_>>()
    });

    none(wide.collect());
}
