//! docs/statuses.md and the tables of docs/retries.md and docs/failures.md are the catalogue in another form.
//! `KAGZI_WRITE_DOCS=1 cargo test -p kagzi-catalogue` writes them.

use std::{fmt::Write, fs, path::PathBuf};

use kagzi_catalogue::{
    Backoff, Class, PRESETS, Preset, Reason, Rung, Status, StepStatus,
    handling::{Tries, http::HTTP, known_codes::HINTS, matrix::MATRIX},
};

fn page(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

fn check(name: &str, fresh: &str) {
    if std::env::var_os("KAGZI_WRITE_DOCS").is_some() {
        fs::write(page(name), fresh).unwrap();
    }
    let committed = fs::read_to_string(page(name)).unwrap_or_default();
    assert!(committed == fresh, "docs/{name} is old: run KAGZI_WRITE_DOCS=1 cargo test -p kagzi-catalogue");
}

#[test]
fn the_page_of_statuses_lists_every_status_and_every_reason_to_wake() {
    let mut text = String::from(STATUSES);
    for status in Status::ALL {
        writeln!(text, "| {} | {} | {} |", status as u8, status.name(), status.meaning()).unwrap();
    }
    text.push_str(REASONS);
    for reason in Reason::ALL {
        writeln!(text, "| {} | {} | {} |", reason.name(), reason.meaning(), reason.status().name()).unwrap();
    }
    text.push_str(STEPS);
    for status in StepStatus::ALL {
        writeln!(text, "| {} | {} | {} |", status as u8, status.name(), status.meaning()).unwrap();
    }
    check("statuses.md", &text);
}

#[test]
fn the_page_of_retries_has_every_backoff_and_every_preset() {
    let text = fs::read_to_string(page("retries.md")).unwrap();
    let mut backoffs = String::from("| backoff | delay | with initial 1 s, coefficient 2, cap 60 s |\n");
    backoffs.push_str("|---|---|---|\n");
    for shape in Backoff::ALL {
        let default = if shape == Backoff::Exponential { " (default)" } else { "" };
        let (delay, example) = shape.formula();
        writeln!(backoffs, "| {}{default} | {delay} | {example} |", shape.name()).unwrap();
    }
    let mut presets = String::from("| name | executions | backoff | within |\n|---|---|---|---|\n");
    for preset in PRESETS {
        let within = preset.within_ms.map(time).unwrap_or_default();
        let (name, executions) = (preset.name, preset.executions);
        writeln!(presets, "| {name} | {executions} | {} | {within} |", delays(preset)).unwrap();
    }
    let text = between(&text, "backoffs", &backoffs);
    check("retries.md", &between(&text, "presets", &presets));
}

#[test]
fn the_page_of_failures_has_every_class_every_rung_and_every_line_of_the_matrix() {
    let mut classes = String::from("| class | means | first rung |\n|---|---|---|\n");
    for class in Class::ALL {
        writeln!(classes, "| {} | {} | {} |", class.name(), class.meaning(), class.first().name()).unwrap();
    }
    let mut rungs = String::from("| rung | means | recorded as |\n|---|---|---|\n");
    for rung in Rung::ALL {
        writeln!(rungs, "| {} | {} | {} |", rung.name(), rung.meaning(), rung.resolution()).unwrap();
    }
    let mut matrix =
        String::from("| kind | code | class | first rung | tried | and |\n|---|---|---|---|---|---|\n");
    for cell in MATRIX {
        let more = [
            cell.before_retry.map(|hook| format!("before each retry: {hook}")),
            cell.hint.map(str::to_owned),
            cell.interaction.map(str::to_owned),
            cell.severity.map(|severity| severity.name().to_owned()),
            cell.message.map(|message| format!("\u{201c}{message}\u{201d}")),
        ];
        let more: Vec<String> = more.into_iter().flatten().collect();
        let (class, first) = (cell.class.name(), cell.first.name());
        let (tries, more) = (tried(cell.tries.as_ref()), more.join(", "));
        writeln!(matrix, "| {} | {} | {class} | {first} | {tries} | {more} |", cell.kind, cell.code).unwrap();
    }
    let mut http =
        String::from("| status | code | class | first rung | tried | and |\n|---|---|---|---|---|---|\n");
    for line in HTTP {
        let (from, to) = line.statuses;
        let statuses = if from == to { from.to_string() } else { format!("{from}–{to}") };
        let hook = line.before_retry.map(|hook| format!("before each retry: {hook}, ")).unwrap_or_default();
        let hint = line.hint.map(|hint| format!("{hint}: ")).unwrap_or_default();
        let (class, first, tries) = (line.class.name(), line.first.name(), tried(line.tries.as_ref()));
        let (code, reason) = (line.code, line.reason);
        writeln!(http, "| {statuses} | {code} | {class} | {first} | {tries} | {hook}{hint}{reason} |")
            .unwrap();
    }
    let mut hints = String::from("| word | the same as |\n|---|---|\n");
    for (hint, code) in HINTS {
        writeln!(hints, "| {hint} | {code} |").unwrap();
    }
    let tables =
        [("classes", classes), ("rungs", rungs), ("matrix", matrix), ("http", http), ("hints", hints)];
    let text = fs::read_to_string(page("failures.md")).unwrap();
    let text = tables.iter().fold(text, |text, (name, table)| between(&text, name, table));
    check("failures.md", &text);
}

fn tried(tries: Option<&Tries>) -> String {
    let Some(tries) = tries else { return String::new() };
    let times = tries.executions.map(|times| format!("{times}×")).unwrap_or_default();
    let Some((shape, first, longest)) = tries.delays else { return times };
    let range = if first == longest { time(first) } else { format!("{} … {}", time(first), time(longest)) };
    format!("{times} {} {range}", shape.name()).trim().to_owned()
}

/// The text with what stands between the two comments of this name replaced.
fn between(text: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- {name}: written by a test -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = text.split_once(&begin).expect("the table's beginning is marked");
    let (_, after) = rest.split_once(&end).expect("the table's end is marked");
    format!("{before}{begin}{table}{end}{after}")
}

fn delays(preset: &Preset) -> String {
    let (Some(shape), Some((first, longest))) = (preset.backoff, preset.intervals_ms) else {
        return String::new();
    };
    let range = match first == longest {
        true => time(first),
        false => format!("{} … {}", time(first), time(longest)),
    };
    let jitter = preset.jitter.map(|jitter| format!(", j = {jitter}")).unwrap_or_default();
    format!("{} {range}{jitter}", shape.name())
}

fn time(ms: u64) -> String {
    match ms {
        0 => "0 s".to_owned(),
        ms if ms % 60_000 == 0 => format!("{} min", ms / 60_000),
        ms if ms % 1_000 == 0 => format!("{} s", ms / 1_000),
        ms => format!("{ms} ms"),
    }
}

const STATUSES: &str = "# Statuses and reasons to wake

Every run has a status. One that has not ended has a reason to wake beside it: what it waits for. `kagzi run
why` says it in a sentence.

| number | status | means |
|---|---|---|
";

const REASONS: &str = "
| reason | what the run waits for | status |
|---|---|---|
";

const STEPS: &str = "
Steps and their attempts have statuses of their own.

| number | status | means |
|---|---|---|
";
