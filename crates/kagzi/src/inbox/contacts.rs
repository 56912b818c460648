//! How people are reached.

use kagzi_proto::v1;

use super::Inbox;
use crate::client::wire::rpc;
use crate::error::Error;
use crate::page::{self, Page};

/// A person, as questions name people.
///
/// ```no_run
/// # async fn set(client: kagzi::Client) -> anyhow::Result<()> {
/// use kagzi::inbox::Contact;
///
/// let ada = Contact { email: "ada@example.com".into(), ..Contact::new("ada") }.member_of("finance");
/// let inbox = client.inbox("operator");
/// inbox.put_contact(ada).await?;
/// for person in inbox.contacts().await? {
///     println!("{} is in {:?}", person.name, person.groups);
/// }
/// inbox.delete_contact("ada").await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Contact {
    /// The name under which the person is asked.
    pub name: String,
    /// Empty: no mail.
    pub email: String,
    /// Empty: none. Only operators set it.
    pub webhook: String,
    /// Questions to `group:NAME` are questions to everybody in it.
    pub groups: Vec<String>,
    /// Of `email`, `webhook` and `push`; none = every way that is known.
    pub channels: Vec<String>,
    /// An IANA name; empty = UTC.
    pub time_zone: String,
    /// `HH:MM`: from then on nothing is sent that can wait.
    pub quiet_from: String,
    /// `HH:MM`: until then.
    pub quiet_to: String,
}

impl Contact {
    /// Somebody of whom nothing but the name is known.
    pub fn new(name: impl Into<String>) -> Contact {
        Contact { name: name.into(), ..Contact::default() }
    }

    /// The same person, in this group too.
    pub fn member_of(mut self, group: impl Into<String>) -> Contact {
        self.groups.push(group.into());
        self
    }

    fn from_proto(contact: v1::Contact) -> Contact {
        Contact {
            name: contact.name,
            email: contact.email,
            webhook: contact.webhook,
            groups: contact.groups,
            channels: contact.channels,
            time_zone: contact.time_zone,
            quiet_from: contact.quiet_from,
            quiet_to: contact.quiet_to,
        }
    }
}

impl Inbox {
    /// Says how a person is reached, and to which groups the person belongs; replaces what was said before.
    pub async fn put_contact(&self, contact: Contact) -> Result<Contact, Error> {
        let contact = v1::Contact {
            name: contact.name,
            email: contact.email,
            webhook: contact.webhook,
            groups: contact.groups,
            channels: contact.channels,
            time_zone: contact.time_zone,
            quiet_from: contact.quiet_from,
            quiet_to: contact.quiet_to,
        };
        let namespace_id = self.client.namespace_id().to_owned();
        let request = v1::PutContactRequest { namespace_id, contact: Some(contact) };
        let answer = rpc!(self.client, Interventions.put_contact, Safe, "set a contact", request)?;
        Ok(Contact::from_proto(answer.contact.unwrap_or_default()))
    }

    /// Everybody, by name.
    pub async fn contacts(&self) -> Result<Vec<Contact>, Error> {
        let list = page::stream(self.clone(), |inbox, page_token| async move {
            let namespace_id = inbox.client.namespace_id().to_owned();
            let request = v1::ListContactsRequest { namespace_id, page_token, ..Default::default() };
            let page = rpc!(inbox.client, Interventions.list_contacts, Safe, "list contacts", request)?;
            let rows = page.contacts.into_iter().map(Contact::from_proto).collect();
            Ok(Page::new(rows, page.next_page_token, page.prev_page_token).without(page.unreadable_count))
        });
        page::all(list).await
    }

    /// Forgets how a person is reached.
    pub async fn delete_contact(&self, name: impl Into<String>) -> Result<(), Error> {
        let (namespace_id, name) = self.named(name.into());
        let request = v1::DeleteContactRequest { namespace_id, name };
        rpc!(self.client, Interventions.delete_contact, Safe, "delete a contact", request)?;
        Ok(())
    }
}
