//! Figures along one axis, for people, for programs and as a picture.

use super::svg::{self, Line, Panel};
use crate::percentile::round;
use kagzi_shell::table;
use serde_json::{Map, Value, json};

pub struct Curve {
    pub title: &'static str,
    /// What grows.
    pub x: X,
    pub columns: Vec<Column>,
    pub points: Vec<Point>,
    /// Whether so few points of so little load that they say nothing.
    pub quick: bool,
}

#[derive(Clone, Copy)]
pub struct X {
    pub label: &'static str,
    pub bytes: bool,
}

/// One kind of figure.
#[derive(Clone, Copy)]
pub struct Column {
    /// In JSON.
    pub key: &'static str,
    /// In the table and the picture.
    pub label: &'static str,
    /// Whether it is drawn, and how.
    pub drawn: Drawn,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Drawn {
    No,
    /// From zero.
    Linear,
    /// Over several powers of ten.
    Log,
}

pub struct Point {
    pub x: u64,
    /// One for each column.
    pub figures: Vec<Option<f64>>,
}

impl Curve {
    pub fn json(&self) -> Value {
        let points = self.points.iter().map(|point| {
            let figures = self.columns.iter().zip(&point.figures);
            let mut fields: Map<String, Value> =
                figures.map(|(column, figure)| (column.key.to_owned(), json!(figure))).collect();
            fields.insert("x".to_owned(), json!(point.x));
            Value::Object(fields)
        });
        json!({
            "x": self.x.label,
            "quick": self.quick,
            "debug_build": cfg!(debug_assertions),
            "measured_at": jiff::Timestamp::now().round(jiff::Unit::Second).map(|at| at.to_string()).ok(),
            "points": points.collect::<Vec<_>>(),
        })
    }

    pub fn text(&self) -> String {
        let mut columns = vec![self.x.label];
        columns.extend(self.columns.iter().map(|column| column.label));
        let mut table = table::with_columns(&columns);
        for point in &self.points {
            let figures = point.figures.iter().map(|figure| figure.map_or("-".to_owned(), short));
            table.add_row(std::iter::once(self.x.name(point.x)).chain(figures));
        }
        format!("{}\n{}", self.title, table::text(table))
    }

    /// A panel for each column that is drawn. Nothing at all has no place on a logarithmic axis: it becomes a
    /// dashed line.
    pub fn plot(&self, store: &str) -> String {
        let drawn = self.columns.iter().enumerate().filter(|(_, column)| column.drawn != Drawn::No);
        let panels = drawn.map(|(at, column)| {
            let of = |point: &Point| Some((point.x as f64, point.figures[at]?));
            let (nothing, something): (Vec<_>, Vec<_>) =
                self.points.iter().filter_map(of).partition(|(x, _)| *x == 0.0);
            Panel {
                label: column.label,
                x_label: self.x.label,
                x_ticks: something.iter().map(|(x, _)| (*x, self.x.name(*x as u64))).collect(),
                log: column.drawn == Drawn::Log,
                line: Line {
                    points: something.iter().map(|(x, y)| (*x, *y, short(*y))).collect(),
                    at_nothing: nothing.first().map(|(_, y)| (*y, format!("dashed: at 0, {}", short(*y)))),
                },
            }
        });
        svg::draw(&format!("{}, {store}", self.title), &panels.collect::<Vec<_>>())
    }
}

impl X {
    fn name(self, x: u64) -> String {
        match (self.bytes, x) {
            (true, x) if x >= 1 << 20 => format!("{} MiB", x >> 20),
            (true, x) if x >= 1 << 10 => format!("{} KiB", x >> 10),
            (true, x) => format!("{x} B"),
            (false, x) => grouped(x),
        }
    }
}

/// As many digits as mean something.
fn short(figure: f64) -> String {
    match figure.abs() {
        large if large >= 1000.0 => grouped(figure.round() as u64),
        middle if middle >= 100.0 => format!("{figure:.0}"),
        small if small >= 10.0 => round(figure, 1).to_string(),
        _ => round(figure, 3).to_string(),
    }
}

/// 1,000,000
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Curve {
        let column = |key, label, drawn| Column { key, label, drawn };
        Curve {
            title: "w3 beside other runs",
            x: X { label: "runs in the store", bytes: false },
            columns: vec![
                column("runs_per_s", "runs/s", Drawn::Linear),
                column("p50_ms", "p50 in ms", Drawn::Log),
                column("fill_s", "filled in s", Drawn::No),
            ],
            points: vec![
                Point { x: 0, figures: vec![Some(8000.0), Some(1.5), None] },
                Point { x: 10_000, figures: vec![Some(7900.0), Some(1.6), Some(0.5)] },
                Point { x: 1_000_000, figures: vec![Some(7500.0), Some(1.8), Some(44.25)] },
            ],
            quick: false,
        }
    }

    #[test]
    fn a_curve_as_json_names_every_figure_of_every_point() {
        let json = sample().json();

        assert_eq!(json["points"][2]["x"], 1_000_000);
        assert_eq!(json["points"][2]["fill_s"], 44.25);
        assert_eq!(json["points"][0]["fill_s"], Value::Null);
    }

    #[test]
    fn the_table_has_a_row_for_each_point() {
        insta::assert_snapshot!(sample().text());
    }

    #[test]
    fn the_picture_has_a_panel_for_each_figure_that_is_drawn() {
        insta::assert_snapshot!(sample().plot("sqlite"));
    }

    #[test]
    fn sizes_are_written_in_their_units() {
        let bytes = X { label: "payload", bytes: true };

        assert_eq!([100, 10_240, 1 << 20].map(|x| bytes.name(x)), ["100 B", "10 KiB", "1 MiB"]);
    }
}
