//! What a reader of this repository may rely on, checked. Nothing but the standard library, so that it takes
//! seconds: `cargo test -p kagzi-tidy`.

#![cfg(test)]

mod columns;
mod documents;
mod files;
mod manifests;
mod tree;
mod words;

/// All complaints at once: who breaks a rule in ten places wants to see ten places.
fn none(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}
