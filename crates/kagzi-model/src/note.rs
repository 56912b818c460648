//! Notes: where people find what to do about the runs of a workflow type, and whom to ask.

use serde::{Deserialize, Serialize};

use crate::{Name, Noun, NounChange, NounKey, NounRejection, NounRow, NounRule, Timestamp};

/// What is known about the runs of one workflow type, whose name is its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub link: String,
    /// Whom to ask; may be empty.
    #[serde(default)]
    pub owner: String,
}

impl Noun for Note {
    const KIND: &'static str = "note";
}

/// Keeps a note. One that is there and says something else is not replaced.
#[derive(Debug, Clone)]
pub struct CreateNote {
    pub namespace: Name,
    pub workflow_type: Name,
    pub note: Note,
}

impl NounRule for CreateNote {
    fn key(&self) -> NounKey {
        NounKey::of::<Note>(self.namespace.clone(), self.workflow_type.clone())
    }

    fn creates(&self) -> bool {
        true
    }

    fn decide(&self, now: Timestamp, known: Option<&NounRow>) -> Result<NounChange, NounRejection> {
        let NounKey { namespace, id, .. } = self.key();
        NounChange::create(known, NounRow::new(namespace, id, &self.note, now))
    }
}

/// Deletes a note.
#[derive(Debug, Clone)]
pub struct DeleteNote {
    pub namespace: Name,
    pub workflow_type: Name,
}

impl NounRule for DeleteNote {
    fn key(&self) -> NounKey {
        NounKey::of::<Note>(self.namespace.clone(), self.workflow_type.clone())
    }

    fn creates(&self) -> bool {
        false
    }

    fn decide(&self, _: Timestamp, known: Option<&NounRow>) -> Result<NounChange, NounRejection> {
        NounChange::delete(known, self.key())
    }
}
