//! Names that users choose, and the rules they must keep.

use std::{borrow::Borrow, fmt, ops::Deref, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::limits::{NAME_BYTES_MAX, STEP_PATH_BYTES_MAX};

/// A short text that many rows share. Cloning counts a reference.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Name(Arc<str>);

impl Name {
    /// The name that says nothing.
    pub fn empty() -> Self {
        Name(Arc::from(""))
    }
}

impl Default for Name {
    fn default() -> Self {
        Name::empty()
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Name(Arc::from(text))
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Name(Arc::from(text))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// Why a text cannot be a name. The message is written for the person who typed it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("must not be empty")]
    Empty,
    #[error("is {len} bytes long, at most {max} are allowed")]
    TooLong { len: usize, max: usize },
    #[error("has a control character at byte {at}")]
    Control { at: usize },
    #[error("begins or ends with a space, which nobody sees; leave it out")]
    Space,
    #[error("is '.' or '..', which mean something else in paths and addresses")]
    Dots,
}

/// Checks a namespace, queue, workflow type, business id or label.
pub fn check_name(text: &str) -> Result<(), NameError> {
    check_text(text, NAME_BYTES_MAX)?;
    if text.trim() != text {
        return Err(NameError::Space);
    }
    if matches!(text, "." | "..") { Err(NameError::Dots) } else { Ok(()) }
}

/// Checks the path of a step.
pub fn check_step_path(text: &str) -> Result<(), NameError> {
    check_text(text, STEP_PATH_BYTES_MAX)
}

fn check_text(text: &str, max: usize) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    if text.len() > max {
        return Err(NameError::TooLong { len: text.len(), max });
    }
    match text.char_indices().find(|(_, c)| c.is_control()) {
        Some((at, _)) => Err(NameError::Control { at }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_anything_printable_up_to_the_limit() {
        assert_eq!(check_name("Bestellung €42 / eilig"), Ok(()));
        assert_eq!(check_name(&"x".repeat(255)), Ok(()));
    }

    #[test]
    fn a_space_that_nobody_sees_makes_no_other_name() {
        for text in [" ", " orders", "orders ", "\u{a0}orders"] {
            assert_eq!(check_name(text), Err(NameError::Space), "{text:?}");
        }
        assert_eq!(check_name("two words"), Ok(()));
        assert_eq!(check_step_path(" as the code has it "), Ok(()));
    }

    #[test]
    fn what_means_another_place_in_a_path_is_no_name() {
        for text in [".", ".."] {
            assert_eq!(check_name(text), Err(NameError::Dots), "{text:?}");
        }
        assert_eq!(check_name("..."), Ok(()));
        assert_eq!(check_name("v1.2"), Ok(()));
    }

    #[test]
    fn bad_names_say_what_is_wrong() {
        assert_eq!(check_name(""), Err(NameError::Empty));
        assert_eq!(check_name(&"x".repeat(256)), Err(NameError::TooLong { len: 256, max: 255 }));
        assert_eq!(check_name("a\nb"), Err(NameError::Control { at: 1 }));
        assert_eq!(check_name("a\0"), Err(NameError::Control { at: 1 }));
    }
}
