//! A run's history as a picture: one line per step, bars on a common time axis.

use super::event::EventView;
use crate::time_text;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::collections::HashMap;

/// Longer names are cut: the bars are what one looks at.
const NAME_WIDTH_MAX: usize = 24;
/// Lines beyond this are counted, not drawn.
const STEPS_MAX: usize = 200;
/// For the time that a line took, at its end.
const TOOK_WIDTH: usize = 10;
/// Narrower terminals get this and wrap.
const AXIS_WIDTH_MIN: usize = 20;

/// How to draw.
#[derive(Clone, Copy)]
pub struct Canvas {
    pub width: usize,
    pub colours: bool,
    /// The end of the axis while the run lives.
    pub now: Timestamp,
}

/// What a stretch of time was spent on. Drawn in this order: what is shorter and matters more comes on top.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spent {
    Waiting,
    Sleeping,
    Retrying,
    Paused,
    Running,
    Failing,
}

const ALL: [Spent; 6] =
    [Spent::Waiting, Spent::Sleeping, Spent::Retrying, Spent::Paused, Spent::Running, Spent::Failing];

impl Spent {
    /// Letters and shades that differ without colour, too.
    fn look(self) -> (char, &'static str, &'static str) {
        match self {
            Spent::Waiting => ('·', "\x1b[2m", "waits for a worker"),
            Spent::Sleeping => ('─', "\x1b[34m", "sleeps"),
            Spent::Retrying => ('░', "\x1b[33m", "waits to retry"),
            Spent::Paused => ('=', "\x1b[35m", "paused"),
            Spent::Running => ('█', "\x1b[32m", "runs"),
            Spent::Failing => ('x', "\x1b[31m", "failed"),
        }
    }
}

struct Stretch {
    from: Timestamp,
    /// None = still going on.
    to: Option<Timestamp>,
    spent: Spent,
}

#[derive(Default)]
struct Line {
    stretches: Vec<Stretch>,
    attempts: u32,
}

impl Line {
    /// Ends what was going on, cutting short a wait that somebody ended early.
    fn end(&mut self, at: Timestamp) {
        self.stretches.retain(|stretch| stretch.from <= at);
        if let Some(last) = self.stretches.last_mut()
            && last.to.is_none_or(|to| to > at)
        {
            last.to = Some(at);
        }
    }

    fn begin(&mut self, spent: Spent, from: Timestamp) {
        self.end(from);
        self.stretches.push(Stretch { from, to: None, spent });
    }

    fn add(&mut self, spent: Spent, from: Timestamp, to: Timestamp) {
        self.end(from);
        self.stretches.push(Stretch { from, to: Some(to), spent });
    }

    fn runs(&self) -> bool {
        self.stretches.last().is_some_and(|last| last.to.is_none() && last.spent == Spent::Running)
    }

    /// An attempt ended. Where nobody told that it began, its end and how long it took say so.
    fn attempt_ended(&mut self, at: Timestamp, elapsed: Option<SignedDuration>) {
        self.attempts += 1;
        match self.runs() {
            true => self.end(at),
            false => {
                let began = elapsed.and_then(|took| at.checked_sub(took).ok()).unwrap_or(at);
                // Two clocks measure: an attempt never begins before the one before it failed.
                let after = self.stretches.last().map_or(began, |last| last.from);
                self.add(Spent::Running, began.max(after), at);
            }
        }
    }
}

/// The picture; nothing for a history without times.
pub fn draw(events: &[EventView], canvas: Canvas) -> Option<String> {
    let first = events.iter().find_map(|event| event.at)?;
    let last = events.iter().rev().find_map(|event| event.at)?;
    let (lines, ended) = lines(events);
    let end = if ended { last } else { canvas.now.max(last) };
    let axis = Axis { from: first, to: end, width: axis_width(&lines, canvas.width) };
    let name_width = name_width(&lines);
    let mut text = String::new();
    for (name, line) in lines.iter().take(STEPS_MAX + 1) {
        let bar = axis.bar(line, canvas.colours);
        let took = axis.took(line);
        let times = if line.attempts > 1 { format!(" ×{}", line.attempts) } else { String::new() };
        text += format!("{:<name_width$} {bar} {took}{times}", cut(name)).trim_end();
        text.push('\n');
    }
    if lines.len() > STEPS_MAX + 1 {
        text += &format!("… and {} more steps\n", lines.len() - STEPS_MAX - 1);
    }
    let length = time_text::rough(end.duration_since(first));
    let gap = axis.width.saturating_sub(length.chars().count() + 1);
    text += &format!("{:<name_width$} 0{}{length}\n", "", " ".repeat(gap));
    text += &legend(&lines, canvas.colours);
    Some(text)
}

fn legend(lines: &[(String, Line)], colours: bool) -> String {
    let used = |spent: &Spent| lines.iter().any(|(_, line)| line.stretches.iter().any(|s| s.spent == *spent));
    let shown: Vec<_> = ALL
        .into_iter()
        .filter(used)
        .map(|spent| format!("{} {}", paint(&[Some(spent)], colours), spent.look().2))
        .collect();
    shown.join("   ")
}

/// The run first, then its steps in the order in which they were first heard of; and whether the run has
/// ended.
fn lines(events: &[EventView]) -> (Vec<(String, Line)>, bool) {
    let mut lines: Vec<(String, Line)> = vec![("run".into(), Line::default())];
    let mut index: HashMap<String, usize> = HashMap::new();
    let mut ended = false;
    for event in events {
        let Some(at) = event.at else { continue };
        let detail: Value =
            event.detail.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let run = &mut lines[0].1;
        match event.kind.as_str() {
            "run_started" | "run_released" | "run_resumed" => run.begin(Spent::Waiting, at),
            "run_reopened" => {
                run.begin(Spent::Waiting, at);
                ended = false;
            }
            "run_claimed" => run.begin(Spent::Running, at),
            "run_parked" => wait_until(run, Spent::Sleeping, at, time(&detail["due_at"])),
            "lease_lost" => wait_until(run, Spent::Retrying, at, time(&detail["retry_at"])),
            "run_retried" => wait_until(run, Spent::Retrying, at, time(&detail["at"])),
            "run_paused" => run.begin(Spent::Paused, at),
            "run_completed" | "run_cancelled" => {
                run.end(at);
                ended = true;
            }
            "run_failed" | "run_timed_out" => {
                run.add(Spent::Failing, at, at);
                ended = true;
            }
            _ => {}
        }
        if ended {
            lines[1..].iter_mut().for_each(|(_, line)| line.end(at));
        }
        let Some(step) = &event.step else { continue };
        if event.kind == "label_set" {
            continue;
        }
        let place = *index.entry(step.clone()).or_insert_with(|| {
            lines.push((step.clone(), Line::default()));
            lines.len() - 1
        });
        let line = &mut lines[place].1;
        let elapsed = detail["elapsed_ms"].as_i64().map(SignedDuration::from_millis);
        match event.kind.as_str() {
            "step_started" => line.begin(Spent::Running, at),
            "step_completed" => line.attempt_ended(at, elapsed),
            "step_failed" => {
                line.attempt_ended(at, elapsed);
                line.stretches.push(Stretch { from: at, to: Some(at), spent: Spent::Failing });
                if let Some(retry_at) = time(&detail["retry_at"]) {
                    line.stretches.push(Stretch { from: at, to: Some(retry_at), spent: Spent::Retrying });
                }
            }
            "sleep_scheduled" => match time(&detail["until"]) {
                Some(until) => line.add(Spent::Sleeping, at, until),
                None => line.begin(Spent::Sleeping, at),
            },
            "sleep_over" => line.end(at),
            _ => {}
        }
    }
    (lines, ended)
}

/// Waits, and from then on for a worker.
fn wait_until(run: &mut Line, spent: Spent, at: Timestamp, due: Option<Timestamp>) {
    match due {
        Some(due) if due > at => {
            run.add(spent, at, due);
            run.stretches.push(Stretch { from: due, to: None, spent: Spent::Waiting });
        }
        Some(_) | None => run.begin(Spent::Waiting, at),
    }
}

/// Times inside events are microseconds.
fn time(value: &Value) -> Option<Timestamp> {
    Timestamp::from_microsecond(value.as_i64()?).ok()
}

struct Axis {
    from: Timestamp,
    to: Timestamp,
    width: usize,
}

impl Axis {
    fn bar(&self, line: &Line, colours: bool) -> String {
        let mut cells: Vec<Option<Spent>> = vec![None; self.width];
        for spent in ALL {
            for stretch in
                line.stretches.iter().filter(|stretch| stretch.spent == spent && stretch.from <= self.to)
            {
                let begin = self.cell(stretch.from).floor() as usize;
                let end = self.cell(stretch.to.unwrap_or(self.to).min(self.to)).ceil() as usize;
                let begin = begin.min(self.width - 1);
                // Whatever happened is seen, however short it was.
                cells[begin..end.clamp(begin + 1, self.width)].fill(Some(spent));
            }
        }
        paint(&cells, colours)
    }

    fn cell(&self, at: Timestamp) -> f64 {
        let span = self.to.duration_since(self.from).as_secs_f64().max(1e-6);
        at.duration_since(self.from).as_secs_f64().max(0.0) / span * self.width as f64
    }

    /// How long the line took from its first to its last stretch.
    fn took(&self, line: &Line) -> String {
        let from = line.stretches.iter().map(|stretch| stretch.from).min();
        let to = line.stretches.iter().map(|stretch| stretch.to.unwrap_or(self.to).min(self.to)).max();
        match (from, to) {
            (Some(from), Some(to)) => time_text::rough(to.duration_since(from).max(SignedDuration::ZERO)),
            (None, _) | (_, None) => String::new(),
        }
    }
}

fn paint(cells: &[Option<Spent>], colours: bool) -> String {
    let mut text = String::new();
    let mut last = None;
    for cell in cells {
        if colours && *cell != last {
            text += "\x1b[0m";
            text += cell.map_or("", |spent| spent.look().1);
        }
        text.push(cell.map_or(' ', |spent| spent.look().0));
        last = *cell;
    }
    if colours && last.is_some() {
        text += "\x1b[0m";
    }
    text
}

fn name_width(lines: &[(String, Line)]) -> usize {
    lines.iter().map(|(name, _)| cut(name).chars().count()).max().unwrap_or(0)
}

fn axis_width(lines: &[(String, Line)], width: usize) -> usize {
    // A name, the bar and the time it took, with a space between them.
    width.saturating_sub(name_width(lines) + 2 + TOOK_WIDTH).max(AXIS_WIDTH_MIN)
}

fn cut(name: &str) -> String {
    match name.chars().count() > NAME_WIDTH_MAX {
        true => name.chars().take(NAME_WIDTH_MAX - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kagzi::history::Event;
    use std::time::{Duration, SystemTime};

    const START: i64 = 1_794_744_000;

    fn event(sequence: u64, second: i64, kind: &str, step: &str, detail: &str) -> EventView {
        let mut event = Event::default();
        let since_1970 = Duration::from_secs((START + second).cast_unsigned());
        (event.sequence, event.at, event.kind) = (sequence, SystemTime::UNIX_EPOCH + since_1970, kind.into());
        (event.step, event.attempt) = (Some(step.to_owned()).filter(|step| !step.is_empty()), 1);
        event.detail = serde_json::from_str(detail).unwrap_or_default();
        EventView::from(event)
    }

    fn micros(second: i64) -> i64 {
        (START + second) * 1_000_000
    }

    /// Waits, charges with one retry, sleeps, ships.
    fn order() -> Vec<EventView> {
        let retry = format!(r#"{{"retry_at":{}}}"#, micros(30));
        let nap = format!(r#"{{"until":{}}}"#, micros(90));
        let parked = format!(r#"{{"due_at":{}}}"#, micros(90));
        vec![
            event(1, 0, "run_started", "", "{}"),
            event(2, 5, "run_claimed", "", "{}"),
            event(3, 10, "step_failed", "charge", &retry),
            event(4, 40, "step_completed", "charge", r#"{"elapsed_ms":8000}"#),
            event(5, 40, "sleep_scheduled", "sleep", &nap),
            event(6, 40, "run_parked", "", &parked),
            event(7, 92, "run_claimed", "", "{}"),
            event(8, 98, "step_completed", "a-step-with-a-name-that-does-not-fit", r#"{"elapsed_ms":5000}"#),
            event(9, 100, "run_completed", "", "{}"),
        ]
    }

    fn canvas(width: usize) -> Canvas {
        Canvas { width, colours: false, now: Timestamp::from_second(START + 120).unwrap() }
    }

    #[test]
    fn a_run_in_eighty_columns_without_colour() {
        let picture = draw(&order(), canvas(80)).unwrap();

        assert!(picture.lines().all(|line| line.chars().count() <= 80), "{picture}");
        assert!(
            picture.starts_with("run ") && picture.contains("charge") && picture.contains("×2"),
            "{picture}"
        );
        for (letter, _, _) in ALL.map(Spent::look).into_iter().filter(|(letter, _, _)| *letter != '=') {
            assert!(picture.contains(letter), "{letter} is not in\n{picture}");
        }
    }

    #[test]
    fn a_living_run_goes_on_to_now() {
        let living: Vec<_> = order().into_iter().take(6).collect();

        let picture = draw(&living, canvas(60)).unwrap();

        assert!(picture.contains("2m0s") && picture.contains('─'), "{picture}");
    }

    #[test]
    fn colours_are_only_added_never_needed() {
        let plain = draw(&order(), canvas(80)).unwrap();
        let coloured = draw(&order(), Canvas { colours: true, ..canvas(80) }).unwrap();

        let mut stripped = String::new();
        let mut rest = coloured.as_str();
        while let Some((before, after)) = rest.split_once('\x1b') {
            stripped += before;
            rest = after.split_once('m').unwrap().1;
        }
        stripped += rest;
        let squeeze = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
        assert_eq!(squeeze(&stripped), squeeze(&plain));
        assert!(coloured.contains("\x1b[32m"));
    }

    #[test]
    fn a_run_that_took_no_time_is_still_drawn() {
        let picture =
            draw(&order()[..1], Canvas { now: Timestamp::from_second(START).unwrap(), ..canvas(40) });

        assert!(picture.unwrap().starts_with("run"));
        assert_eq!(draw(&[], canvas(80)), None);
    }
}
