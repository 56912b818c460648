//! The server translates and never decides: where a run stands and what follows from it is the model's
//! business.

use std::{fs, path::Path};

/// Names of the model that only a decision needs. Translating a state into words of the contract is `wire`'s
/// work.
const FORBIDDEN: [&str; 3] = ["State", "Aggregate", "decide"];

#[test]
fn no_file_outside_wire_names_what_only_a_decision_needs() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();

    look_into(&source, &source.join("wire"), &mut found);

    assert!(found.is_empty(), "decide in kagzi-model instead:\n{}", found.join("\n"));
}

fn look_into(folder: &Path, wire: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path != wire {
                look_into(&path, wire, found);
            }
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        // One import is one statement, which may have several lines.
        for import in text.split(';').filter(|statement| statement.contains("kagzi_model::")) {
            let names = import.split(|c: char| !c.is_alphanumeric() && c != '_');
            found.extend(
                names
                    .filter(|name| FORBIDDEN.contains(name))
                    .map(|name| format!("{} names kagzi_model's {name}", path.display())),
            );
        }
    }
}
