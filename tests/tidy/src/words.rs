//! A metaphor needs a line in the glossary; otherwise the industry's word.
//!
//! What a machine can check of that is that a new word is a decision: the words of file names and of public
//! types are in the glossary of ARCHITECTURE.md or in `plain_words.txt`, the words that need no explanation.
//! Who adds a word there says that a newcomer knows it.

use crate::none;
use crate::tree::{File, file, files, root};
use std::collections::BTreeSet;

const PLAIN_WORDS: &str = "tests/tidy/plain_words.txt";

/// `StepState` and `step_state` are both `step` and `state`.
fn split(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for letter in name.chars() {
        let begins = letter.is_uppercase() && !before.is_uppercase() || !letter.is_alphabetic();
        if begins && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if letter.is_alphabetic() {
            words.last_mut().expect("it began with one").extend(letter.to_lowercase());
        }
        before = letter;
    }
    words.retain(|word| word.len() > 1);
    words
}

/// One form for one and many, so that a word is listed once.
fn singular(word: &str) -> String {
    if let Some(stem) = word.strip_suffix("ies") {
        return format!("{stem}y");
    }
    let hisses = |stem: &&str| ["ss", "sh", "ch"].iter().any(|end| stem.ends_with(end));
    let hissing = word.strip_suffix("es").filter(hisses);
    let plain = word.strip_suffix('s').filter(|stem| stem.len() > 2 && !stem.ends_with(['s', 'u', 'i', 'a']));
    hissing.or(plain).unwrap_or(word).to_owned()
}

/// The words of a source file's path and of the types that it makes public.
fn nouns(file: &File) -> Vec<String> {
    let path = file.path.trim_end_matches(".rs").split('/').skip(2);
    let types = file.text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix("pub ")?;
        let kinds = ["struct ", "enum ", "trait ", "type "];
        let rest = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
        rest.split(|letter: char| !letter.is_alphanumeric()).next()
    });
    path.chain(types).flat_map(split).map(|word| singular(&word)).collect()
}

/// Every word of the glossary's first column.
fn glossary() -> BTreeSet<String> {
    let text = file("ARCHITECTURE.md").text;
    let words = text.split("## Words").nth(1).and_then(|rest| rest.split("\n## ").next());
    let rows = words.expect("ARCHITECTURE.md has a glossary").lines().filter(|line| line.starts_with('|'));
    let named = rows.filter_map(|row| row.split('|').nth(1)).flat_map(split);
    named.map(|word| singular(&word)).collect()
}

#[test]
fn every_noun_is_in_the_glossary_or_a_plain_word() {
    let sources = files(&[".rs"]).into_iter();
    let sources = sources.filter(|file| file.path.starts_with("crates/") && file.path.contains("/src/"));
    let mut used: Vec<(String, String)> = sources
        .flat_map(|file| nouns(&file).into_iter().map(move |noun| (noun, file.path.clone())))
        .collect();
    used.sort();
    used.dedup_by(|a, b| a.0 == b.0);
    let known = glossary();
    used.retain(|(noun, _)| !known.contains(noun));
    if std::env::var_os("KAGZI_WRITE_WORDS").is_some() {
        let list: String = used.iter().map(|(noun, _)| format!("{noun}\n")).collect();
        std::fs::write(root().join(PLAIN_WORDS), list).expect("the list can be written");
    }
    let plain = file(PLAIN_WORDS).text;
    let plain: BTreeSet<&str> = plain.lines().collect();
    let new = used.iter().filter(|(noun, _)| !plain.contains(noun.as_str()));
    let mut complaints: Vec<_> = new
        .map(|(noun, path)| {
            format!("{path}: `{noun}`: a line in ARCHITECTURE.md's glossary, or in {PLAIN_WORDS}")
        })
        .collect();
    let used: BTreeSet<&str> = used.iter().map(|(noun, _)| noun.as_str()).collect();
    let unused = plain.difference(&used).map(|word| format!("{PLAIN_WORDS}: nothing is called `{word}`"));
    complaints.extend(unused);

    none(complaints);
}

#[test]
fn names_are_split_into_words() {
    assert_eq!(split("StepState"), ["step", "state"]);
    assert_eq!(split("run_filter"), ["run", "filter"]);
    assert_eq!(split("PgBouncerURL"), ["pg", "bouncer", "url"].map(String::from));
    assert_eq!(["policies", "batches", "status"].map(singular), ["policy", "batch", "status"]);
}
