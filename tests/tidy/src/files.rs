//! One idea per file, found by the file's name.

use crate::none;
use crate::tree::{file, files};
use std::collections::BTreeMap;

const LINES_MAX: usize = 400;

/// Path and reason of each file that is longer, `path: reason`.
const LONG_FILES: &str = "tests/tidy/long_files.txt";

#[test]
fn files_longer_than_400_lines_are_listed_with_their_reason() {
    let list = file(LONG_FILES).text;
    let mut listed: BTreeMap<&str, &str> = BTreeMap::new();
    let mut complaints = Vec::new();
    for line in list.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        match line.split_once(": ") {
            Some((path, reason)) if !reason.trim().is_empty() => _ = listed.insert(path, reason),
            Some(_) | None => complaints.push(format!("{LONG_FILES}: {line}: write `path: reason`")),
        }
    }
    for file in files(&[".rs"]) {
        let lines = file.text.lines().count();
        match (lines > LINES_MAX, listed.remove(file.path.as_str())) {
            (true, None) => complaints.push(format!(
                "{} has {lines} lines: split it by ideas, or give the reason in {LONG_FILES}",
                file.path
            )),
            (false, Some(_)) => complaints
                .push(format!("{} has {lines} lines and no longer belongs in {LONG_FILES}", file.path)),
            (true, Some(_)) | (false, None) => {}
        }
    }
    complaints.extend(listed.keys().map(|path| format!("{LONG_FILES} names {path}, which does not exist")));

    none(complaints);
}

/// `x.rs` beside `x/` says what it is in every list of files. A module that integration tests share is the
/// exception: cargo would make a test of its own of `tests/x.rs`, so it is `tests/x/mod.rs`.
#[test]
fn no_source_file_is_called_mod() {
    let named_mod = files(&["/mod.rs", "mod.rs"]).into_iter().map(|file| file.path);
    let complaints = named_mod
        .filter(|path| path.ends_with("/mod.rs") && !path.contains("/tests/"))
        .map(|path| format!("{path}: call it like its folder, beside it"));

    none(complaints.collect());
}

#[test]
fn no_file_is_named_after_nothing() {
    let named = |path: &String| {
        let name = path.rsplit('/').next().unwrap_or_default();
        ["helpers.rs", "helper.rs", "utils.rs", "util.rs", "common.rs", "misc.rs"].contains(&name)
    };
    let complaints = files(&[".rs"]).into_iter().map(|file| file.path).filter(named);

    none(complaints.map(|path| format!("{path}: a name that says what is inside")).collect());
}
