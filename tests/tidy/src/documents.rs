//! Documents name what exists.

use crate::none;
use crate::tree::{file, files, root};

/// Where a path in a document may begin: the root, or a crate's folder or its sources.
fn exists(path: &str) -> bool {
    let root = root();
    let crates = std::fs::read_dir(root.join("crates")).expect("the crates").flatten().map(|e| e.path());
    let mut places = vec![root.clone(), root.join("crates"), root.join("docs"), root.join("scripts")];
    for one in crates {
        places.extend([one.clone(), one.join("src"), one.join("tests"), one.join("src/bin")]);
    }
    places.push(root.join("tests/python"));
    places.push(root.join("examples"));
    places.push(root.join("examples/src"));
    places.push(root.join("bench/instructions/src"));
    places.push(root.join("proto/kagzi/v1"));
    places.iter().any(|place| matches(place, path))
}

/// Whether `place/path` is there. A `*` stands for any name, `NAME` and `X` for one that is yet to come.
fn matches(place: &std::path::Path, path: &str) -> bool {
    let mut here = vec![place.to_path_buf()];
    for part in path.trim_end_matches('/').split('/') {
        let is_pattern = part.contains('*') || part.contains("NAME") || part.contains("NNNN");
        here = here
            .into_iter()
            .flat_map(|folder| match is_pattern {
                true => entries(&folder, part),
                false => vec![folder.join(part)],
            })
            .filter(|path| path.exists())
            .collect();
    }
    !here.is_empty()
}

fn entries(folder: &std::path::Path, pattern: &str) -> Vec<std::path::PathBuf> {
    // `NNNN-title.md` is any `….md`, `NAME.rs` any `….rs`.
    let ending = pattern.rfind('.').map_or("", |dot| &pattern[dot..]);
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.path());
    names.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

/// Words in back ticks that look like files or folders.
fn paths(text: &str) -> Vec<&str> {
    let endings = [".rs", ".sh", ".md", ".proto", ".toml", ".sql", ".py", ".json", ".txt", "/"];
    let fences = text.split("```").step_by(2);
    let spans = fences.flat_map(|part| part.split('`').skip(1).step_by(2));
    spans
        .flat_map(|code| code.split([' ', ',']))
        .map(|word| word.trim_start_matches("./"))
        .filter(|word| endings.iter().any(|ending| word.ends_with(ending)))
        .filter(|word| !word.starts_with(['-', '.', '<', '$', '=', '/']) && !word.contains("://"))
        .collect()
}

#[test]
fn every_path_in_contributing_architecture_and_the_mission_exists() {
    let missing =
        ["CONTRIBUTING.md", "ARCHITECTURE.md", "docs/mission.md"].into_iter().flat_map(|document| {
            let text = file(document).text;
            let missing = paths(&text).into_iter().filter(|path| !exists(path));
            missing.map(|path| format!("{document} names {path}, which does not exist")).collect::<Vec<_>>()
        });

    none(missing.collect());
}

/// The mission's sources are known to nobody outside; public text says what it means instead.
#[test]
fn only_the_mission_speaks_of_its_seeds() {
    let spoken = ["the seeds", "seeds'", "seeds of this project"];
    let texts = files(&[".rs", ".md", ".proto", ".sh", ".sql", ".toml", ".py"]).into_iter();
    let public = texts.filter(|file| file.path != "docs/mission.md" && !file.path.starts_with("tests/tidy/"));
    let complaints = public.flat_map(|file| {
        let lines = file.text.lines().enumerate();
        let said = lines.filter(|(_, line)| spoken.iter().any(|words| line.contains(words)));
        said.map(|(n, line)| format!("{}:{}: {}", file.path, n + 1, line.trim())).collect::<Vec<_>>()
    });

    none(complaints.collect());
}
