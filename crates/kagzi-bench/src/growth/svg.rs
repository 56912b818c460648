//! Plots as small SVG files, readable on light and dark pages.

use std::fmt::Write;

pub struct Panel<'a> {
    /// Of the vertical axis.
    pub label: &'a str,
    pub x_label: &'a str,
    /// Where, and what is written there.
    pub x_ticks: Vec<(f64, String)>,
    /// Whether the vertical axis is logarithmic; the horizontal one always is.
    pub log: bool,
    pub line: Line,
}

pub struct Line {
    /// Where, how high, and what is written beside the dot.
    pub points: Vec<(f64, f64, String)>,
    /// The height of a dashed line, where nothing has grown yet, and what is written about it.
    pub at_nothing: Option<(f64, String)>,
}

/// The size of a panel, and the room that its axes and the title take.
const WIDTH: f64 = 380.0;
const HEIGHT: f64 = 290.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 28.0;
const TOP: f64 = 52.0;
const BOTTOM: f64 = 52.0;

/// The page decides: a picture that is embedded follows the reader's choice of light or dark.
const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#1f2328}.title{font-size:14px;font-weight:600}\
.page{fill:#ffffff}.grid{stroke:#d1d9e0}.axis{stroke:#59636e}.value{font-size:11px;fill:#0550ae}\
.line{fill:none;stroke:#0969da;stroke-width:2}.dot{fill:#0969da}\
.nothing{stroke:#bc4c00;stroke-dasharray:5 4}.nothing-text{fill:#bc4c00;font-size:11px}\
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}.grid{stroke:#30363d}\
.axis{stroke:#9198a1}.value{fill:#79c0ff}.line{stroke:#58a6ff}.dot{fill:#58a6ff}\
.nothing{stroke:#f0883e}.nothing-text{fill:#f0883e}}";

/// Panels side by side under a title.
pub fn draw(title: &str, panels: &[Panel<'_>]) -> String {
    let width = WIDTH * panels.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {HEIGHT}\" width=\"{width}\" \
         height=\"{HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n<style>{STYLE}</style>\n\
         <rect class=\"page\" width=\"{width}\" height=\"{HEIGHT}\"/>\n\
         <text class=\"title\" x=\"12\" y=\"22\">{title}</text>\n"
    );
    for (at, panel) in panels.iter().enumerate() {
        svg += &format!("<g transform=\"translate({} 0)\">\n", at as f64 * WIDTH);
        svg += &panel.draw();
        svg += "</g>\n";
    }
    svg + "</svg>\n"
}

impl Panel<'_> {
    fn draw(&self) -> String {
        let mut svg = String::new();
        let (x, y) = self.axes();
        let (left, right, bottom) = (LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM);
        svg += &text("", left, TOP - 12.0, "start", self.label);
        svg += &text("", (left + right) / 2.0, HEIGHT - 14.0, "middle", self.x_label);
        for (tick, label) in y.ticks() {
            let at = y.place(tick);
            svg += &line("grid", (left, at), (right, at));
            svg += &text("", left - 8.0, at + 4.0, "end", &label);
        }
        for (tick, label) in &self.x_ticks {
            let at = x.place(*tick);
            svg += &line("axis", (at, bottom), (at, bottom + 5.0));
            svg += &text("", at, bottom + 20.0, "middle", label);
        }
        svg += &line("axis", (left, bottom), (right, bottom));
        let dashed = self.line.at_nothing.as_ref().map(|(height, _)| y.place(*height));
        if let (Some(at), Some((_, words))) = (dashed, &self.line.at_nothing) {
            svg += &line("nothing", (left, at), (right, at));
            svg += &text("nothing-text", right, TOP - 12.0, "end", words);
        }
        let places: Vec<(f64, f64)> =
            self.line.points.iter().map(|(px, py, _)| (x.place(*px), y.place(*py))).collect();
        let path: Vec<String> = places.iter().map(|(px, py)| format!("{px:.1},{py:.1}")).collect();
        // Writing into a string cannot fail.
        let _ = writeln!(svg, "<polyline class=\"line\" points=\"{}\"/>", path.join(" "));
        for ((px, py), (_, _, value)) in places.iter().zip(&self.line.points) {
            let _ = writeln!(svg, "<circle class=\"dot\" cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"3.5\"/>");
            // Below the dot where the dashed line would go through the text.
            let crossed = dashed.is_some_and(|dashed| (py - 24.0..py - 3.0).contains(&dashed));
            let offset = if crossed { 17.0 } else { -9.0 };
            svg += &text("value", *px, py + offset, "middle", value);
        }
        svg
    }

    fn axes(&self) -> (Scale, Scale) {
        let (left, right, bottom) = (LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM);
        let xs: Vec<f64> = self.line.points.iter().map(|(x, _, _)| *x).collect();
        let ys =
            self.line.points.iter().map(|(_, y, _)| *y).chain(self.line.at_nothing.iter().map(|(y, _)| *y));
        let ys: Vec<f64> = ys.collect();
        // A dot on the vertical axis would hide its labels.
        let x = Scale { log: true, low: least(&xs), high: most(&xs), from: left + 26.0, to: right - 14.0 };
        let (low, high) = match self.log {
            true => (power_below(least(&ys)), power_below(most(&ys)) * 10.0),
            false => (0.0, nice_above(most(&ys) * 1.1)),
        };
        (x, Scale { log: self.log, low, high, from: bottom, to: TOP })
    }
}

/// From values to places.
struct Scale {
    log: bool,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    fn place(&self, value: f64) -> f64 {
        let (value, low, high) = match self.log {
            true => (value.max(f64::MIN_POSITIVE).log10(), self.low.log10(), self.high.log10()),
            false => (value, self.low, self.high),
        };
        let share = if high > low { (value - low) / (high - low) } else { 0.5 };
        self.from + share * (self.to - self.from)
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        let label = |value: f64| {
            let text = if value >= 10_000.0 { format!("{}k", value / 1000.0) } else { value.to_string() };
            (value, text)
        };
        if self.log {
            let powers = (self.high / self.low).log10().round() as i32;
            return (0..=powers).map(|power| self.low * 10f64.powi(power)).map(tidy).map(label).collect();
        }
        (0..=4).map(|quarter| tidy(self.high * f64::from(quarter) / 4.0)).map(label).collect()
    }
}

/// Without the digits that binary fractions leave behind.
fn tidy(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let scale = 10f64.powi(3 - value.log10().floor() as i32);
    (value * scale).round() / scale
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min).min(1e15)
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::MIN_POSITIVE, f64::max)
}

fn power_below(value: f64) -> f64 {
    10f64.powi(value.max(1e-9).log10().floor() as i32)
}

/// The next number whose quarters are short.
fn nice_above(value: f64) -> f64 {
    let power = power_below(value);
    let steps = [1.0, 1.2, 1.6, 2.0, 2.4, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.iter().map(|step| step * power).find(|nice| *nice >= value).unwrap_or(10.0 * power)
}

fn line(class: &str, from: (f64, f64), to: (f64, f64)) -> String {
    format!(
        "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>\n",
        from.0, from.1, to.0, to.1
    )
}

fn text(class: &str, x: f64, y: f64, anchor: &str, text: &str) -> String {
    debug_assert!(!text.contains(['<', '&']), "labels are ours and need no escaping");
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    format!("<text{class} x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_axes_begin_at_zero_and_end_at_a_short_number_above_everything() {
        assert_eq!(nice_above(8_800.0), 10_000.0);
        assert_eq!(nice_above(1.7), 2.0);
        assert_eq!(nice_above(0.23), 0.24);
    }

    #[test]
    fn logarithmic_axes_give_every_power_the_same_room() {
        let scale = Scale { log: true, low: 1.0, high: 1000.0, from: 0.0, to: 300.0 };

        assert_eq!(scale.place(10.0).round(), 100.0);
        assert_eq!(
            scale.ticks().iter().map(|(_, label)| label.as_str()).collect::<Vec<_>>(),
            ["1", "10", "100", "1000"]
        );
    }

    #[test]
    fn a_single_point_stands_in_the_middle() {
        let scale = Scale { log: true, low: 7.0, high: 7.0, from: 0.0, to: 300.0 };

        assert_eq!(scale.place(7.0), 150.0);
    }
}
