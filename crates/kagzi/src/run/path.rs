//! How steps get their identity: scope, name and occurrence make the path, the order of calls the position.
//!
//! Both are given out when a step is *called*, not when its future is first polled. Which of two parallel
//! steps is polled or ends first differs from run to run; the order of calls in the code does not.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use kagzi_proto::v1::StepRef;
use parking_lot::Mutex;

use crate::limits::{NAME_BYTES_MAX, PATH_BYTES_MAX};

/// A name that cannot be part of a step's path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid name {name:?} of a step or scope: it {rule}")]
pub(crate) struct InvalidName {
    name: String,
    rule: &'static str,
}

/// A part of a workflow with its own names and positions.
pub(crate) struct Scope {
    /// Empty, or ends with a slash.
    prefix: String,
    calls: Mutex<Calls>,
    /// Scopes are made without a `Result`, so that `ctx.scope(..)` chains; the first step tells.
    invalid: Option<InvalidName>,
    /// The scopes around it that are recorded as one, and itself if it is: the outermost first.
    numbers: Vec<usize>,
}

#[derive(Default)]
struct Calls {
    next_position: u32,
    steps: HashMap<String, u32>,
    scopes: HashMap<String, u32>,
}

impl Scope {
    #[cfg(test)]
    pub(crate) fn root() -> Arc<Scope> {
        Scope::of_generation(1)
    }

    /// Where the paths of a run begin. A run that continued in place has steps of the same names again: they
    /// are other steps, and their idempotency keys are others too.
    pub(crate) fn of_generation(generation: u32) -> Arc<Scope> {
        let prefix = if generation < 2 { String::new() } else { format!("~{generation}/") };
        Arc::new(Scope { prefix, calls: Mutex::default(), invalid: None, numbers: Vec::new() })
    }

    /// A scope below this one. The second of a name is `name#2`: two that shared their counters would
    /// hand out paths by whichever step came first.
    pub(crate) fn child(&self, name: &str) -> Arc<Scope> {
        let name = scope_name(name);
        let invalid = self.invalid.clone().or_else(|| check(&name).err());
        let occurrence = count(&mut self.calls.lock().scopes, &name);
        let mut prefix = self.path(&name, occurrence);
        prefix.push('/');
        Arc::new(Scope { prefix, calls: Mutex::default(), invalid, numbers: self.numbers.clone() })
    }

    /// A scope below this one that is recorded as one, and its identity as a step: its path ends with a
    /// slash, as no other step's does. It has no number before it begins.
    pub(crate) fn call_scope(&self, name: &str) -> Result<(StepRef, Scope), InvalidName> {
        if let Some(invalid) = &self.invalid {
            return Err(invalid.clone());
        }
        let name = scope_name(name);
        check(&name)?;
        let mut calls = self.calls.lock();
        let mut path = self.path(&name, calls.scopes.get(&*name).copied().unwrap_or(0) + 1);
        path.push('/');
        if path.len() > PATH_BYTES_MAX {
            return Err(InvalidName { name: path, rule: "makes a path longer than 1024 bytes" });
        }
        count(&mut calls.scopes, &name);
        let position = calls.next_position;
        calls.next_position += 1;
        let (prefix, numbers) = (path.clone(), self.numbers.clone());
        let scope = Scope { prefix, calls: Mutex::default(), invalid: None, numbers };
        Ok((StepRef { path, position }, scope))
    }

    /// Its code begins: it has this number.
    pub(crate) fn begun(&self, number: usize) -> Scope {
        let numbers = self.numbers.iter().copied().chain([number]).collect();
        Scope { prefix: self.prefix.clone(), calls: Mutex::default(), invalid: None, numbers }
    }

    /// The innermost scope around a call that is recorded as one; 0 = none.
    pub(crate) fn number(&self) -> usize {
        self.numbers.last().copied().unwrap_or(0)
    }

    pub(crate) fn numbers(&self) -> &[usize] {
        &self.numbers
    }

    /// The identity of the step that is being called.
    pub(crate) fn call(&self, name: &str) -> Result<StepRef, InvalidName> {
        if let Some(invalid) = &self.invalid {
            return Err(invalid.clone());
        }
        let name = &*escaped(name);
        check(name)?;
        let mut calls = self.calls.lock();
        let path = self.path(name, calls.steps.get(name).copied().unwrap_or(0) + 1);
        if path.len() > PATH_BYTES_MAX {
            return Err(InvalidName { name: path, rule: "makes a path longer than 1024 bytes" });
        }
        count(&mut calls.steps, name);
        let position = calls.next_position;
        calls.next_position += 1;
        Ok(StepRef { path, position })
    }

    /// The identity of an operation whose path is its own.
    pub(crate) fn call_own(&self, path: String) -> StepRef {
        let mut calls = self.calls.lock();
        let position = calls.next_position;
        calls.next_position += 1;
        StepRef { path, position }
    }

    /// The path of the n-th step or scope of that name in this scope.
    pub(crate) fn path(&self, name: &str, occurrence: u32) -> String {
        let prefix = &self.prefix;
        if occurrence < 2 { format!("{prefix}{name}") } else { format!("{prefix}{name}#{occurrence}") }
    }
}

/// The part of a path that names its scope: everything up to and including the last slash, but for the one
/// that a scope's own path ends with.
pub(crate) fn scope_of(path: &str) -> &str {
    let name_end = path.strip_suffix('/').unwrap_or(path).len();
    path[..name_end].rfind('/').map_or("", |slash| &path[..=slash])
}

/// A name as that of a scope: what begins with a tilde is a generation.
fn scope_name(name: &str) -> Cow<'_, str> {
    let name = escaped(name);
    match name.strip_prefix('~') {
        Some(rest) => Cow::Owned(format!("%7E{rest}")),
        None => name,
    }
}

fn count(occurrences: &mut HashMap<String, u32>, name: &str) -> u32 {
    match occurrences.get_mut(name) {
        Some(occurrence) => {
            *occurrence += 1;
            *occurrence
        }
        None => {
            occurrences.insert(name.to_owned(), 1);
            1
        }
    }
}

/// A name as part of a path. Names come from data (`ctx.scope(&sku)`), so what has a meaning in a path is
/// written as in an address: `a/b` becomes `a%2Fb`.
pub(crate) fn escaped(name: &str) -> Cow<'_, str> {
    let special = |character: char| matches!(character, '/' | '#') || character.is_control();
    if !name.contains(special) {
        return Cow::Borrowed(name);
    }
    let mut escaped = String::with_capacity(name.len() + 8);
    for character in name.chars() {
        if special(character) {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                escaped.push_str(&format!("%{byte:02X}"));
            }
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

fn check(name: &str) -> Result<(), InvalidName> {
    let rule = if name.is_empty() {
        "must not be empty"
    } else if name.starts_with('~') {
        "must not begin with '~', as the engine's own do"
    } else if name.len() > NAME_BYTES_MAX {
        "must not be longer than 255 bytes"
    } else {
        return Ok(());
    };
    Err(InvalidName { name: name.to_owned(), rule })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(scope: &Scope, name: &str) -> (String, u32) {
        let step = scope.call(name).unwrap();
        (step.path, step.position)
    }

    #[test]
    fn the_same_name_gets_occurrence_numbers_and_every_call_a_position() {
        let scope = Scope::root();

        assert_eq!(called(&scope, "charge"), ("charge".into(), 0));
        assert_eq!(called(&scope, "ship"), ("ship".into(), 1));
        assert_eq!(called(&scope, "charge"), ("charge#2".into(), 2));
        assert_eq!(called(&scope, "charge"), ("charge#3".into(), 3));
    }

    #[test]
    fn scopes_count_for_themselves_and_nest() {
        let root = Scope::root();
        let item = root.child("item-7");

        assert_eq!(called(&root, "charge"), ("charge".into(), 0));
        assert_eq!(called(&item, "charge"), ("item-7/charge".into(), 0));
        assert_eq!(called(&item.child("part"), "weigh"), ("item-7/part/weigh".into(), 0));
        assert_eq!(called(&root, "ship"), ("ship".into(), 1));
        assert_eq!(called(&root.child("item-7"), "charge"), ("item-7#2/charge".into(), 0));
    }

    #[test]
    fn the_scope_of_a_path_is_everything_before_its_name() {
        assert_eq!(scope_of("charge"), "");
        assert_eq!(scope_of("a/b/charge#2"), "a/b/");
        assert_eq!((scope_of("a/b/"), scope_of("a/")), ("a/", ""));
    }

    #[test]
    fn bad_names_are_refused_with_the_rule_and_take_no_position() {
        let scope = Scope::root();
        let bad = ["", &"x".repeat(256)];

        for name in bad {
            assert!(scope.call(name).is_err(), "{name:?} was accepted");
        }

        assert_eq!(called(&scope, &"x".repeat(255)).1, 0);
        let message = scope.call("").unwrap_err().to_string();
        assert_eq!(message, r#"invalid name "" of a step or scope: it must not be empty"#);
    }

    #[test]
    fn names_from_data_are_escaped_and_never_mistaken_for_a_path() {
        let root = Scope::root();

        assert_eq!(called(&root, "a/b").0, "a%2Fb");
        assert_eq!(called(&root, "a#2").0, "a%232");
        assert_eq!(called(&root, "a\nb\u{85}").0, "a%0Ab%C2%85");
        assert_eq!(called(&root.child("sku/7"), "charge").0, "sku%2F7/charge");
        assert_eq!(called(&root, "a/b").0, "a%2Fb#2");
    }

    #[test]
    fn a_later_generation_has_paths_of_its_own_and_no_scope_looks_like_one() {
        let second = Scope::of_generation(2);

        assert_eq!(called(&second, "charge"), ("~2/charge".into(), 0));
        assert_eq!(called(&second.child("item-7"), "charge"), ("~2/item-7/charge".into(), 0));
        assert_eq!(called(&Scope::root().child("~2"), "charge"), ("%7E2/charge".into(), 0));
    }

    #[test]
    fn a_bad_scope_is_told_by_its_first_step() {
        let scope = Scope::root().child("").child("fine");

        assert!(scope.call("charge").is_err());
    }

    #[test]
    fn scopes_may_not_nest_past_the_longest_path() {
        let mut scope = Scope::root();
        for _ in 0..5 {
            scope = scope.child(&"x".repeat(250));
        }

        assert!(scope.call("charge").unwrap_err().to_string().ends_with("longer than 1024 bytes"));
    }
}
