//! How a person is reached, and which groups the person belongs to.

use serde::{Deserialize, Serialize};

use super::{Channel, Severity, is_group};
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

    /// On which channels the person is told. A critical incident is told on every channel that leads there.
    pub fn told_on(&self, severity: Option<Severity>) -> Vec<Channel> {
        let mut on = vec![Channel::InApp];
        let critical = severity == Some(Severity::Critical);
        let named = |channel: Channel| self.channels.contains(&channel);
        let wanted = |channel: Channel| critical || self.channels.is_empty() || named(channel);
        if !self.email.is_empty() && wanted(Channel::Email) {
            on.push(Channel::Email);
        }
        // Whoever names the channel and no address means that of the server.
        if named(Channel::Webhook) || (!self.webhook.is_empty() && wanted(Channel::Webhook)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every combination of what a contact wants, which addresses it has, and how bad it is.
    #[test]
    fn a_person_is_told_on_the_channels_that_they_want_and_that_lead_to_them() {
        let (email, webhook) = (Channel::Email, Channel::Webhook);
        let choices = [vec![], vec![Channel::InApp], vec![email], vec![webhook], vec![email, webhook]];
        let severities = [None, Some(Severity::Low), Some(Severity::High), Some(Severity::Critical)];
        for channels in choices {
            for (has_email, has_webhook) in [(false, false), (false, true), (true, false), (true, true)] {
                for severity in severities {
                    let contact = Contact {
                        email: if has_email { "ada@example.org".into() } else { String::new() },
                        webhook: if has_webhook {
                            "https://hooks.example.org/".into()
                        } else {
                            String::new()
                        },
                        channels: channels.clone(),
                        ..Contact::default()
                    };

                    let told = contact.told_on(severity);

                    let critical = severity == Some(Severity::Critical);
                    let wants = |channel| critical || channels.is_empty() || channels.contains(&channel);
                    assert!(told.contains(&Channel::InApp));
                    assert_eq!(told.contains(&email), has_email && wants(email));
                    let standard = channels.contains(&webhook);
                    assert_eq!(told.contains(&webhook), standard || has_webhook && wants(webhook));
                }
            }
        }
    }
}
