//! How a person is reached, and which groups the person belongs to.

use serde::{Deserialize, Serialize};

use super::{Channel, is_group};
use crate::{Name, Noun, NounChange, NounKey, NounRejection, NounRow, NounRule, Timestamp};

/// One person, by the name under which questions are assigned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    #[serde(default)]
    pub email: String,
    /// Set by an operator, and never by a workflow.
    #[serde(default)]
    pub webhook: String,
    /// Without the word `group:`.
    #[serde(default)]
    pub groups: Vec<Name>,
    /// How the person wants to be told, besides in the application. Empty: every way that is known.
    #[serde(default)]
    pub channels: Vec<Channel>,
    /// An IANA name; empty = UTC.
    #[serde(default)]
    pub time_zone: String,
    /// `HH:MM`; between them nothing is sent but what is critical.
    #[serde(default)]
    pub quiet_from: String,
    #[serde(default)]
    pub quiet_to: String,
}

impl Noun for Contact {
    const KIND: &'static str = "contact";
}

impl Contact {
    /// Whether somebody who is named like this is this person.
    pub fn answers_to(&self, own: &Name, assignee: &Name) -> bool {
        if !is_group(assignee) {
            return own == assignee;
        }
        let group = &assignee[super::GROUP.len()..];
        self.groups.iter().any(|name| **name == *group)
    }

    /// On which channels the person is told.
    pub fn told_on(&self) -> Vec<Channel> {
        let mut on = vec![Channel::InApp];
        let wanted = |channel: Channel| self.channels.is_empty() || self.channels.contains(&channel);
        if !self.email.is_empty() && wanted(Channel::Email) {
            on.push(Channel::Email);
        }
        if !self.webhook.is_empty() && wanted(Channel::Webhook) {
            on.push(Channel::Webhook);
        }
        on
    }
}

/// Changes of a contact.
#[derive(Debug, Clone, PartialEq)]
pub enum ContactRule {
    /// Makes it, or replaces it.
    Put {
        namespace: Name,
        name: Name,
        contact: Contact,
    },
    Delete {
        namespace: Name,
        name: Name,
    },
}

impl NounRule for ContactRule {
    fn key(&self) -> NounKey {
        match self {
            ContactRule::Put { namespace, name, .. } | ContactRule::Delete { namespace, name } => {
                NounKey::of::<Contact>(namespace.clone(), name.clone())
            }
        }
    }

    fn creates(&self) -> bool {
        matches!(self, ContactRule::Put { .. })
    }

    fn decide(&self, now: Timestamp, known: Option<&NounRow>) -> Result<NounChange, NounRejection> {
        match self {
            ContactRule::Put { namespace, name, contact } => {
                let new = NounRow::new(namespace.clone(), name.clone(), contact, now);
                Ok(match known {
                    None => NounChange::Put(new),
                    Some(known) if known.body == new.body => NounChange::Nothing(known.clone()),
                    Some(known) => NounChange::Put(NounRow {
                        version: known.version + 1,
                        created_at: known.created_at,
                        ..new
                    }),
                })
            }
            ContactRule::Delete { .. } => NounChange::delete(known, self.key()),
        }
    }
}
