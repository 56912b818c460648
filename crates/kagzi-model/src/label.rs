//! Labels: what people search runs by. Set when a run starts and by its workflow; the last write of a name
//! counts.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{Name, NameError, check_name};

/// How the names of labels begin that only the server gives.
const OWN: &str = "kagzi.";

/// The label that holds for whom a run is (`user_id`): labels are stored and indexed, so it is found by it.
pub const USER_LABEL: &str = "kagzi.user_id";

/// The labels of one run, by name. Most runs have none, which costs nothing; a copy counts a reference.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(Option<Arc<BTreeMap<Name, Name>>>);

impl Labels {
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |labels| labels.len())
    }

    /// The value under a name.
    pub fn get(&self, name: &str) -> Option<&Name> {
        self.0.as_ref()?.get(name)
    }

    /// Names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Name)> {
        self.0.iter().flat_map(|labels| labels.iter())
    }

    /// The same labels with one more, or with another value under its name.
    pub fn with(&self, name: Name, value: Name) -> Labels {
        let mut labels = self.0.as_deref().cloned().unwrap_or_default();
        labels.insert(name, value);
        Labels(Some(Arc::new(labels)))
    }
}

impl FromIterator<(Name, Name)> for Labels {
    fn from_iter<I: IntoIterator<Item = (Name, Name)>>(labels: I) -> Self {
        let labels: BTreeMap<Name, Name> = labels.into_iter().collect();
        // One way to say "none", so that rows compare equal.
        Labels((!labels.is_empty()).then(|| Arc::new(labels)))
    }
}

/// Why a text cannot be the name or the value of a label. Written for the person who typed it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    #[error("{0}")]
    Text(#[from] NameError),
    #[error("has a '=', which separates names from values")]
    Equals,
    #[error("begins with '{OWN}', which only the server may use; choose another name")]
    Ours,
}

/// Checks the name of a label: any name without `=`, so that `name=value` can be read back.
pub fn check_label_name(name: &str) -> Result<(), LabelError> {
    check_name(name)?;
    if name.contains('=') {
        return Err(LabelError::Equals);
    }
    if name.starts_with(OWN) { Err(LabelError::Ours) } else { Ok(()) }
}

/// Checks the value of a label: any name, or nothing at all.
pub fn check_label_value(value: &str) -> Result<(), LabelError> {
    if value.is_empty() { Ok(()) } else { Ok(check_name(value)?) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_write_of_a_name_counts_and_earlier_copies_stay() {
        let first: Labels = [("tenant".into(), "acme".into())].into_iter().collect();

        let second = first.with("tenant".into(), "globex".into());

        assert_eq!(first.get("tenant"), Some(&"acme".into()));
        assert_eq!(second.get("tenant"), Some(&"globex".into()));
        assert_eq!((second.len(), Labels::default().len()), (1, 0));
    }

    #[test]
    fn no_labels_are_equal_however_they_were_made() {
        assert_eq!(Labels::from_iter([]), Labels::default());
        assert!(Labels::from_iter([]).is_empty());
    }

    #[test]
    fn bad_labels_say_what_is_wrong() {
        assert_eq!(check_label_name("a=b"), Err(LabelError::Equals));
        assert_eq!(check_label_name(USER_LABEL), Err(LabelError::Ours));
        assert_eq!(check_label_name(""), Err(NameError::Empty.into()));
        assert!(check_label_name(&"x".repeat(256)).unwrap_err().to_string().contains("at most 255"));
        assert_eq!(check_label_value(""), Ok(()));
        assert_eq!(check_label_value("a=b"), Ok(()));
        assert_eq!(check_label_value("a\0"), Err(NameError::Control { at: 1 }.into()));
    }
}
