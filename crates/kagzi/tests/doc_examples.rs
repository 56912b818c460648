//! Everything that callers, operators and builders of schedules and workers can call stands in an example of
//! its file, which is compiled with the other tests.

use std::{fs, path::Path};

const FILES: [&str; 20] = [
    "admin.rs",
    "admin/namespace.rs",
    "admin/namespaces.rs",
    "admin/queue_handle.rs",
    "admin/queues.rs",
    "admin/workers.rs",
    "client.rs",
    "client/builder.rs",
    "client/handle.rs",
    "client/runs.rs",
    "client/start.rs",
    "client/wire.rs",
    "embedded.rs",
    "history/attempts.rs",
    "history/events.rs",
    "retry_policy.rs",
    "schedule/builder.rs",
    "schedule/handle.rs",
    "schedule/list.rs",
    "worker/builder.rs",
];

#[test]
fn every_method_stands_in_an_example() {
    let mut missing = Vec::new();
    for file in FILES {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file)).unwrap();
        let examples = examples(&text);
        for name in methods(&text) {
            let used = [format!(".{name}("), format!("::{name}("), format!(".{name}::<")];
            if !used.iter().any(|call| examples.contains(call)) {
                missing.push(format!("{file}: {name}"));
            }
        }
    }

    assert!(missing.is_empty(), "without an example:\n{}", missing.join("\n"));
}

/// All lines of documentation between three backticks.
fn examples(text: &str) -> String {
    let mut inside = false;
    let mut examples = String::new();
    for line in text.lines().map(str::trim_start).filter_map(|line| line.strip_prefix("///")) {
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
        let line = line.strip_prefix("async ").unwrap_or(line);
        let name = line.strip_prefix("fn ")?.split(['(', '<']).next()?;
        Some(name.to_owned())
    };
    text.lines().filter_map(declared).collect()
}
