//! A run's history as a picture: one line per step, bars on a common time axis.

use super::event::EventView;
use crate::time_text;
use jiff::{SignedDuration, Timestamp};
use kagzi_model::history::{Projection, Spent, TimeLine, Timeline};

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

/// Letters and shades that differ without colour, too.
fn look(spent: Spent) -> (char, &'static str, &'static str) {
    match spent {
        Spent::Waiting => ('·', "\x1b[2m", "waits for a worker"),
        Spent::Sleeping => ('─', "\x1b[34m", "sleeps"),
        Spent::Retrying => ('░', "\x1b[33m", "waits to retry"),
        Spent::Paused => ('=', "\x1b[35m", "paused"),
        Spent::Running => ('█', "\x1b[32m", "runs"),
        Spent::Failing => ('x', "\x1b[31m", "failed"),
    }
}

/// The picture; nothing for a history without times.
pub fn draw(events: &[EventView], canvas: Canvas) -> Option<String> {
    let first = events.iter().find_map(|event| event.at)?;
    let last = events.iter().rev().find_map(|event| event.at)?;
    let timeline = timeline(events);
    let lines = timeline.lines();
    let end = if timeline.ended() { last } else { canvas.now.max(last) };
    let axis = Axis { from: micros(first), to: micros(end), width: axis_width(lines, canvas.width) };
    let name_width = name_width(lines);
    let mut text = String::new();
    for line in lines.iter().take(STEPS_MAX + 1) {
        let bar = axis.bar(line, canvas.colours);
        let took = axis.took(line);
        let times = if line.attempts > 1 { format!(" ×{}", line.attempts) } else { String::new() };
        text += format!("{:<name_width$} {bar} {took}{times}", name(line)).trim_end();
        text.push('\n');
    }
    if lines.len() > STEPS_MAX + 1 {
        text += &format!("… and {} more steps\n", lines.len() - STEPS_MAX - 1);
    }
    let length = time_text::rough(end.duration_since(first));
    let gap = axis.width.saturating_sub(length.chars().count() + 1);
    text += &format!("{:<name_width$} 0{}{length}\n", "", " ".repeat(gap));
    text += &legend(lines, canvas.colours);
    Some(text)
}

fn legend(lines: &[TimeLine], colours: bool) -> String {
    let used = |spent: &Spent| lines.iter().any(|line| line.stretches.iter().any(|s| s.spent == *spent));
    let shown: Vec<_> = Spent::ALL
        .into_iter()
        .filter(used)
        .map(|spent| format!("{} {}", paint(&[Some(spent)], colours), look(spent).2))
        .collect();
    shown.join("   ")
}

/// What the run and its steps spent their time on.
fn timeline(events: &[EventView]) -> Timeline {
    let mut timeline = Timeline::default();
    for event in events {
        event.recorded().iter().for_each(|event| timeline.absorb(event));
    }
    timeline
}

fn micros(at: Timestamp) -> kagzi_model::Timestamp {
    kagzi_model::Timestamp(at.as_microsecond())
}

fn name(line: &TimeLine) -> String {
    cut(line.step.as_deref().unwrap_or("run"))
}

struct Axis {
    from: kagzi_model::Timestamp,
    to: kagzi_model::Timestamp,
    width: usize,
}

impl Axis {
    fn bar(&self, line: &TimeLine, colours: bool) -> String {
        let mut cells: Vec<Option<Spent>> = vec![None; self.width];
        for spent in Spent::ALL {
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

    fn cell(&self, at: kagzi_model::Timestamp) -> f64 {
        let span = (self.to - self.from).as_secs_f64().max(1e-6);
        (at - self.from).as_secs_f64() / span * self.width as f64
    }

    /// How long the line took from its first to its last stretch.
    fn took(&self, line: &TimeLine) -> String {
        let from = line.stretches.iter().map(|stretch| stretch.from).min();
        let to = line.stretches.iter().map(|stretch| stretch.to.unwrap_or(self.to).min(self.to)).max();
        match (from, to) {
            (Some(from), Some(to)) => time_text::rough(SignedDuration::from_micros(to.0 - from.0)),
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
            text += cell.map_or("", |spent| look(spent).1);
        }
        text.push(cell.map_or(' ', |spent| look(spent).0));
        last = *cell;
    }
    if colours && last.is_some() {
        text += "\x1b[0m";
    }
    text
}

fn name_width(lines: &[TimeLine]) -> usize {
    lines.iter().map(|line| name(line).chars().count()).max().unwrap_or(0)
}

fn axis_width(lines: &[TimeLine], width: usize) -> usize {
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
    use kagzi::history::Event as SdkEvent;
    use std::time::{Duration, SystemTime};

    const START: i64 = 1_794_744_000;

    fn event(sequence: u64, second: i64, kind: &str, step: &str, detail: &str) -> EventView {
        let mut event = SdkEvent::default();
        let since_1970 = Duration::from_secs((START + second).cast_unsigned());
        (event.sequence, event.at, event.kind) = (sequence, SystemTime::UNIX_EPOCH + since_1970, kind.into());
        (event.step, event.attempt) = (Some(step.to_owned()).filter(|step| !step.is_empty()), 1);
        event.detail = serde_json::from_str(detail).unwrap_or_default();
        EventView::from(event)
    }

    fn second(second: i64) -> i64 {
        (START + second) * 1_000_000
    }

    /// Waits, charges with one retry, sleeps, ships.
    fn order() -> Vec<EventView> {
        let claimed = r#"{"worker":"01890a5d-ac96-774b-bcce-b302099a8057","epoch":1}"#;
        let failure = r#""failure":{"code":"BUSY","message":"busy"}"#;
        let retry = format!(r#"{{"position":0,{failure},"elapsed_ms":0,"retry_at":{}}}"#, second(30));
        let nap = format!(r#"{{"position":1,"until":{}}}"#, second(90));
        let parked = format!(r#"{{"due_at":{}}}"#, second(90));
        vec![
            event(1, 0, "run_started", "", "{}"),
            event(2, 5, "run_claimed", "", claimed),
            event(3, 10, "step_failed", "charge", &retry),
            event(4, 40, "step_completed", "charge", r#"{"position":0,"elapsed_ms":8000}"#),
            event(5, 40, "sleep_scheduled", "sleep", &nap),
            event(6, 40, "run_parked", "", &parked),
            event(7, 92, "run_claimed", "", claimed),
            event(
                8,
                98,
                "step_completed",
                "a-step-with-a-name-that-does-not-fit",
                r#"{"position":2,"elapsed_ms":5000}"#,
            ),
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
        for (letter, _, _) in Spent::ALL.map(look).into_iter().filter(|(letter, _, _)| *letter != '=') {
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

    /// Whatever the server tells is understood here, field by field: a kind that is not would be left out of
    /// the picture without a word.
    #[test]
    fn every_kind_of_event_is_understood() {
        for kind in kagzi_model::EventKind::samples() {
            let mut event = SdkEvent::default();
            event.kind = kind.name().to_owned();
            event.detail = serde_json::to_value(&kind).unwrap();
            if let Some((step, attempt)) = kind.step() {
                (event.step, event.attempt) = (Some(step.to_string()), attempt);
            }

            let understood = EventView::from(event).recorded().unwrap().kind;

            assert_eq!(understood.number(), kind.number(), "{kind:?}");
        }
    }
}
