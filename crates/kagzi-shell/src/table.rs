use crate::output::wants_colours;
use comfy_table::{Attribute, Cell, Color, Table, presets};

/// A table with a heading per column. Without borders, so that `awk` and eyes both read it.
pub fn with_columns(headings: &[&str]) -> Table {
    let mut table = bare();
    table.set_header(headings.iter().map(|heading| Cell::new(heading).add_attribute(Attribute::Bold)));
    table
}

/// One line per field, for showing a single thing.
pub fn of_fields<'a>(fields: impl IntoIterator<Item = (&'a str, Option<String>)>) -> Table {
    let mut table = bare();
    for (name, value) in fields {
        if let Some(value) = value {
            table.add_row([Cell::new(name).add_attribute(Attribute::Bold), Cell::new(value)]);
        }
    }
    table
}

pub fn text(mut table: Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt()
}

/// How wide the terminal is; 80 columns when there is none.
pub fn width() -> usize {
    Table::new().width().map_or(80, usize::from)
}

/// What a state means to somebody who scans a column.
#[derive(Clone, Copy, Debug)]
pub enum Mood {
    Good,
    Bad,
    Busy,
    Idle,
}

pub fn mood_cell(text: &str, mood: Mood) -> Cell {
    let colour = match mood {
        Mood::Good => Color::Green,
        Mood::Bad => Color::Red,
        Mood::Busy => Color::Cyan,
        Mood::Idle => Color::Yellow,
    };
    Cell::new(text).fg(colour)
}

fn bare() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if !wants_colours(&std::io::stdout()) {
        table.force_no_tty();
    }
    table
}
