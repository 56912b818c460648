//! No type of another crate in the public surface but those that are listed here with a reason. A new version
//! of any other crate is then no breaking change of ours.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Crates whose names may stand in public signatures, and why.
const ALLOWED: &[(&str, &str)] = &[
    ("std", "the language's own"),
    ("kagzi_catalogue", "our own: the closed sets of the contract, declared once for server and SDK"),
    ("anyhow", "the error of workflow functions and steps; 1.x, and every error converts into it"),
    ("serde", "what inputs and results must implement; 1.x"),
    ("serde_json", "details of failures and events are JSON of any shape; 1.x"),
    ("schemars", "the trait from which ctx.input takes the form that it asks for; 1.x"),
    ("bytes", "payloads are shared and not copied; 1.x"),
    ("uuid", "what ctx.uuid() answers with; 1.x"),
    ("futures_util", "Stream, the trait of lists that are read row by row; there is none in std"),
];

/// Paths of other crates that a public item may be made of: everything that the manifest names.
const OTHERS: &[&str] = &[
    "tonic",
    "prost",
    "prost_types",
    "kagzi_proto",
    "kagzi_server",
    "tokio",
    "tokio_util",
    "tokio_stream",
    "parking_lot",
    "tracing",
    "chacha20poly1305",
    "miniz_oxide",
    "opentelemetry",
    "base64",
    "sha2",
    "hostname",
    "thiserror",
];

#[test]
fn no_public_signature_names_a_type_of_a_crate_that_is_not_listed() {
    let mut found = Vec::new();
    for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let text = without_tests(&text);
        let foreign = imported(text);
        for signature in public_signatures(text) {
            for word in words(&signature) {
                if is_named(&signature, word) && (foreign.contains(word) || OTHERS.contains(&word)) {
                    found.push(format!("{}: '{word}' in: {signature}", file.display()));
                }
            }
        }
    }
    assert!(found.is_empty(), "public signatures name types of other crates:\n{}", found.join("\n"));
}

#[test]
fn what_is_looked_for_is_found() {
    let source = "use tonic::transport::{Channel, Endpoint};\nuse kagzi_proto::v1::{self, Run as Wire};\n\
                  pub struct Open {\n    pub channel: Channel,\n    hidden: Endpoint,\n}\n\
                  pub fn of(run: v1::Run) -> Wire {\n    Endpoint::new()\n}\npub(crate) fn to(a: Endpoint) \
                  {}\n";
    let foreign = imported(source);
    let named: BTreeSet<String> = public_signatures(source)
        .iter()
        .flat_map(|signature| {
            words(signature).filter(|word| is_named(signature, word)).map(str::to_owned).collect::<Vec<_>>()
        })
        .filter(|word| foreign.contains(word.as_str()))
        .collect();

    assert_eq!(named.into_iter().collect::<Vec<_>>(), ["Channel", "Wire", "v1"]);
    assert!(ALLOWED.iter().all(|(name, why)| !OTHERS.contains(name) && !why.is_empty()));
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("lib.rs") {
            found.push(path);
        }
    }
    found
}

/// Tests stand last in a file. What `__private` offers stands in lib.rs, which is left out for it.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\n").next().unwrap_or(text)
}

/// Names that a file takes from crates that are not listed. Those of its own crate are judged where they are
/// made.
fn imported(text: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for statement in text.split("use ").skip(1) {
        let Some((statement, _)) = statement.split_once(';') else { continue };
        let Some((from, _)) = statement.split_once("::") else { continue };
        if !OTHERS.contains(&from.trim()) {
            continue;
        }
        for part in statement.split([',', '{', '}']) {
            let part = part.trim();
            let name = part.rsplit(" as ").next().unwrap_or(part).rsplit("::").next().unwrap_or(part).trim();
            match name {
                "self" => {
                    names.extend(statement.split("::{").next().and_then(|path| path.rsplit("::").next()))
                }
                "" => {}
                name => drop(names.insert(name)),
            }
        }
    }
    names
}

/// Everything that begins with `pub ` (and not `pub(crate)`), up to its body or its end; fields of structs
/// among them.
fn public_signatures(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let line = line.trim();
        if !line.starts_with("pub ") || line.starts_with("pub mod ") {
            continue;
        }
        let mut signature = line.to_owned();
        while !signature.ends_with([';', '{', ',', '}']) || unclosed(&signature) {
            let Some(more) = lines.next() else { break };
            signature.push(' ');
            signature.push_str(more.trim());
        }
        let private = signature.starts_with("pub struct") && !signature.contains("(pub ");
        let end = if private { ['(', '{'] } else { ['{', '{'] };
        found.push(signature.split(end).next().unwrap_or_default().to_owned());
    }
    found
}

/// Arguments go on in the next line.
fn unclosed(signature: &str) -> bool {
    let count = |sign: char| signature.matches(sign).count();
    count('(') > count(')') || (signature.contains("where") && !signature.ends_with('{'))
}

/// As a type, or as the way to one; arguments and functions are called alike.
fn is_named(signature: &str, word: &str) -> bool {
    word.starts_with(char::is_uppercase) || signature.contains(&format!("{word}::"))
}

fn words(signature: &str) -> impl Iterator<Item = &str> {
    signature.split(|sign: char| !sign.is_alphanumeric() && sign != '_').filter(|word| !word.is_empty())
}
