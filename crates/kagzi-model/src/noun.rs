//! Small nouns: things of their own that are kept, listed and deleted by their id, and that the database is
//! asked nothing else about. Each is a type with its rules; all of them share one table, so that one more of
//! them needs neither a migration nor a statement.

use serde::{Serialize, de::DeserializeOwned};

use crate::{Entity, Name, Rejection, Timestamp, limits::NOUNS_MAX};

/// What is kept of one noun. Its fields travel as JSON; a field that is added later has a default.
pub trait Noun: Serialize + DeserializeOwned {
    /// Its name in the table and in messages. Never changed.
    const KIND: &'static str;
}

/// Names one noun.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NounKey {
    pub namespace: Name,
    pub kind: Name,
    pub id: Name,
}

impl NounKey {
    pub fn of<N: Noun>(namespace: Name, id: Name) -> Self {
        NounKey { namespace, kind: N::KIND.into(), id }
    }
}

/// One row: a noun, and who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NounRow {
    pub key: NounKey,
    /// Rises with every change.
    pub version: u64,
    /// The noun as JSON.
    pub body: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl NounRow {
    /// A new noun.
    pub fn new<N: Noun>(namespace: Name, id: Name, noun: &N, now: Timestamp) -> Self {
        let body = serde_json::to_string(noun).expect("our own types are always valid JSON");
        let key = NounKey::of::<N>(namespace, id);
        NounRow { key, version: 1, body, created_at: now, updated_at: now }
    }

    /// The noun that it keeps.
    pub fn read<N: Noun>(&self) -> Result<N, NounRejection> {
        serde_json::from_str(&self.body)
            .map_err(|error| NounRejection::Unreadable { key: self.key.clone(), why: error.to_string() })
    }
}

impl Entity for NounRow {
    type Key = NounKey;

    fn key(&self) -> NounKey {
        self.key.clone()
    }

    fn version(&self) -> u64 {
        self.version
    }
}

/// What a request makes of its noun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NounChange {
    /// It was carried out before: the noun as it is.
    Nothing(NounRow),
    /// The noun is new or has changed; a changed one has a higher version.
    Put(NounRow),
    /// The noun is deleted.
    Delete(NounRow),
}

impl NounChange {
    /// Creates a noun. One that says the same already is the repeat of this call.
    pub fn create(known: Option<&NounRow>, new: NounRow) -> Result<NounChange, NounRejection> {
        match known {
            None => Ok(NounChange::Put(new)),
            Some(known) if known.body == new.body => Ok(NounChange::Nothing(known.clone())),
            Some(_) => Err(NounRejection::Exists(new.key)),
        }
    }

    /// Deletes a noun.
    pub fn delete(known: Option<&NounRow>, key: NounKey) -> Result<NounChange, NounRejection> {
        known.cloned().map(NounChange::Delete).ok_or(NounRejection::NotFound(key))
    }
}

/// A request about one noun, with its rule: a pure function of what is known of it.
pub trait NounRule: Send + Sync {
    /// Which noun it is about.
    fn key(&self) -> NounKey;
    /// Whether it makes something new, which a namespace that is disabled or unknown does not take.
    fn creates(&self) -> bool;
    /// How many of its kind a namespace may have.
    fn max(&self) -> usize {
        NOUNS_MAX
    }
    fn decide(&self, now: Timestamp, known: Option<&NounRow>) -> Result<NounChange, NounRejection>;
}

/// Why a request about a noun was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NounRejection {
    #[error("namespace '{}' has no {} '{}'", .0.namespace, .0.kind, .0.id)]
    NotFound(NounKey),
    #[error("namespace '{}' has another {} '{}' already", .0.namespace, .0.kind, .0.id)]
    Exists(NounKey),
    #[error("{} '{}' cannot be read: {why}", .key.kind, .key.id)]
    Unreadable { key: NounKey, why: String },
    #[error(
        "namespace '{}' has {max} of the kind {}, the most that are allowed; delete one \
         before you create '{}'",
        .key.namespace, .key.kind, .key.id
    )]
    TooMany { key: NounKey, max: usize },
    #[error(transparent)]
    NotAdmitted(Rejection),
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Note(String);

    impl Noun for Note {
        const KIND: &'static str = "note";
    }

    fn note(text: &str, at: i64) -> NounRow {
        NounRow::new("shop".into(), "n".into(), &Note(text.into()), Timestamp(at))
    }

    #[test]
    fn creating_again_is_a_repeat_only_when_it_says_the_same() {
        let known = note("a", 1);

        assert_eq!(NounChange::create(Some(&known), note("a", 9)), Ok(NounChange::Nothing(known.clone())));
        assert_eq!(
            NounChange::create(Some(&known), note("b", 9)),
            Err(NounRejection::Exists(known.key.clone()))
        );
        assert_eq!(NounChange::create(None, known.clone()), Ok(NounChange::Put(known)));
    }

    #[test]
    fn a_body_that_nobody_understands_is_said_and_not_guessed() {
        let broken = NounRow { body: "{}".into(), ..note("a", 1) };

        let Err(refused) = broken.read::<Note>() else { panic!("it was read") };

        assert!(refused.to_string().starts_with("note 'n' cannot be read: "), "{refused}");
    }
}
