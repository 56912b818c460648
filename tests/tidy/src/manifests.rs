//! Manifests that cargo accepts and a contributor would still trip over.

use crate::none;
use crate::tree::{File, files, root};

/// A `[[test]]` block of a manifest.
struct TestTarget {
    name: String,
    path: Option<String>,
    needs_features: bool,
}

fn test_targets(manifest: &File) -> Vec<TestTarget> {
    let blocks = manifest.text.split("\n[[test]]\n").skip(1);
    let value = |block: &str, key: &str| {
        let of_block = block.split("\n[").next().unwrap_or_default().to_owned();
        let line = of_block.lines().find(|line| line.starts_with(key))?.to_owned();
        Some(line.split_once('=')?.1.trim().trim_matches('"').to_owned())
    };
    blocks
        .map(|block| TestTarget {
            name: value(block, "name").unwrap_or_default(),
            path: value(block, "path"),
            needs_features: value(block, "required-features").is_some(),
        })
        .collect()
}

/// The file or the folder's `main.rs` that cargo finds by itself.
fn found_at(folder: &str, name: &str) -> Option<String> {
    [format!("tests/{name}.rs"), format!("tests/{name}/main.rs")]
        .into_iter()
        .find(|path| root().join(folder).join(path).is_file())
}

/// A test that uses what only a feature has, without saying so, breaks the build of everybody without the
/// feature.
#[test]
fn tests_that_need_a_feature_say_so() {
    let mut complaints = Vec::new();
    for manifest in files(&["Cargo.toml"]) {
        let folder = manifest.path.trim_end_matches("Cargo.toml").trim_end_matches('/');
        let targets = test_targets(&manifest);
        for target in &targets {
            let name = &target.name;
            let path = target.path.clone().or_else(|| found_at(folder, name));
            match path {
                Some(path) if root().join(folder).join(&path).is_file() => {}
                Some(_) | None => complaints.push(format!("{}: no file for test {name}", manifest.path)),
            }
            if !target.needs_features {
                complaints.push(format!("{}: test {name} needs no block: cargo finds it", manifest.path));
            }
        }
        let sources = files(&[".rs"]).into_iter();
        let prefix = format!("{folder}/tests/");
        for source in sources.filter(|source| !folder.is_empty() && source.path.starts_with(&prefix)) {
            let rest = &source.path[prefix.len()..];
            let name = rest.split('/').next().unwrap_or_default().trim_end_matches(".rs");
            let uses = ["kagzi::testing", "kagzi::embedded", "kagzi::Embedded"];
            let says_so = targets.iter().any(|target| target.name == name && target.needs_features);
            if folder == "crates/kagzi" && uses.iter().any(|used| source.text.contains(used)) && !says_so {
                complaints.push(format!(
                    "{} uses the feature `testing`: {} needs a [[test]] block with required-features",
                    source.path, manifest.path
                ));
            }
        }
    }

    none(complaints);
}
