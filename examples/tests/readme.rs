//! The README's first workflow is a program of this crate, so it is compiled, run and compared in CI.

use std::fs;

#[test]
fn the_first_workflow_in_the_readme_is_the_program_that_ci_runs() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let readme = fs::read_to_string(format!("{root}/README.md")).unwrap();
    let program = fs::read_to_string(format!("{root}/examples/src/bin/readme.rs")).unwrap();

    let shown = readme.split_once("```rust\n").and_then(|(_, rest)| rest.split_once("```")).unwrap().0;

    assert_eq!(shown, program, "copy examples/src/bin/readme.rs into README.md, or the other way round");
}
