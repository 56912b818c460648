//! Everything that users can call stands in an example of its file, which is compiled with the other tests.
//! A file that is new is looked at too.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// What only our own tests and benchmarks call.
const HIDDEN: &[&str] = &["client_on", "worker_on"];

#[test]
fn every_method_stands_in_an_example() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut missing = Vec::new();
    let mut methods_seen = 0;
    for file in files(&source) {
        let text = fs::read_to_string(&file).unwrap();
        let examples = examples(&text);
        let file = file.strip_prefix(&source).unwrap().display().to_string();
        for name in methods(&text).into_iter().filter(|name| !HIDDEN.contains(&name.as_str())) {
            methods_seen += 1;
            let used = [format!(".{name}("), format!("::{name}("), format!(".{name}::<")];
            if !used.iter().any(|call| examples.contains(call)) {
                missing.push(format!("{file}: {name}"));
            }
        }
    }

    assert!(methods_seen > 200, "only {methods_seen} methods were found: does the test still look?");
    assert!(missing.is_empty(), "without an example:\n{}", missing.join("\n"));
}

/// The front page leads to what a newcomer looks for first, in one click.
#[test]
fn the_front_page_leads_to_the_first_six_things() {
    let page = include_str!("../src/lib.rs");
    let rows: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("//! | ")).collect();

    for (wanted, link) in [
        ("start", "[`Client::workflow`]"),
        ("wait for its result", "[`RunHandle::result`]"),
        ("wait for somebody's word", "[`WorkflowContext::signal`]"),
        ("step", "[`WorkflowContext::step`]"),
        ("retry", "[`RetryPolicy`]"),
        ("timetable", "[`schedule`]"),
        ("test", "[`testing`]"),
    ] {
        assert!(rows.iter().any(|row| row.contains(wanted) && row.contains(link)), "{wanted}: {link}");
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// All lines of documentation between three backticks.
fn examples(text: &str) -> String {
    let mut inside = false;
    let mut examples = String::new();
    let documented = |line: &'_ str| line.starts_with("///") || line.starts_with("//!");
    for line in text.lines().map(str::trim_start).filter(|line| documented(line)).map(|line| &line[3..]) {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if inside {
            examples.push_str(line);
            examples.push('\n');
        }
    }
    examples
}

/// The names of all public methods.
fn methods(text: &str) -> Vec<String> {
    let declared = |line: &str| {
        let line = line.strip_prefix("    pub ")?;
        let line = ["async ", "const "].iter().find_map(|word| line.strip_prefix(word)).unwrap_or(line);
        let name = line.strip_prefix("fn ")?.split(['(', '<']).next()?;
        Some(name.to_owned())
    };
    text.lines().filter_map(declared).collect()
}
