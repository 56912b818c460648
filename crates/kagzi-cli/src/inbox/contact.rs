//! `kagzi inbox contact …`: how people are reached.

use kagzi::inbox::{Contact, Inbox};
use serde::Serialize;

use crate::output::{self, Format};
use crate::session::Session;
use crate::table;

#[derive(clap::Subcommand)]
pub enum Verb {
    /// Say how a person is reached; replaces what was said before.
    Set(Set),
    /// List people.
    List,
    /// Forget how a person is reached.
    Delete(Delete),
}

#[derive(clap::Args)]
pub struct Set {
    /// The name under which the person is asked.
    name: String,
    #[arg(long, default_value = "", hide_default_value = true)]
    email: String,
    /// A URL that notices are posted to.
    #[arg(long, default_value = "", hide_default_value = true)]
    webhook: String,
    /// A group that the person belongs to; may be given several times.
    #[arg(long = "group")]
    groups: Vec<String>,
    /// email or webhook; may be given several times. Nothing = every way that is known.
    #[arg(long = "channel")]
    channels: Vec<String>,
    /// An IANA name, for the quiet hours.
    #[arg(long, default_value = "", hide_default_value = true)]
    time_zone: String,
    /// HH:MM: from then on nothing is sent that can wait.
    #[arg(long, default_value = "", hide_default_value = true, requires = "quiet_to")]
    quiet_from: String,
    /// HH:MM: until then.
    #[arg(long, default_value = "", hide_default_value = true, requires = "quiet_from")]
    quiet_to: String,
}

#[derive(clap::Args)]
pub struct Delete {
    name: String,
}

#[derive(Serialize)]
struct ContactView {
    name: String,
    email: String,
    webhook: String,
    groups: Vec<String>,
    channels: Vec<String>,
    time_zone: String,
    quiet_from: String,
    quiet_to: String,
}

#[derive(Serialize)]
struct Deleted {
    name: String,
    deleted: bool,
}

impl From<Contact> for ContactView {
    fn from(contact: Contact) -> ContactView {
        ContactView {
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

pub async fn perform(verb: Verb, inbox: &Inbox, session: &Session) -> anyhow::Result<()> {
    match verb {
        Verb::Set(set) => {
            let contact = Contact {
                name: set.name,
                email: set.email,
                webhook: set.webhook,
                groups: set.groups,
                channels: set.channels,
                time_zone: set.time_zone,
                quiet_from: set.quiet_from,
                quiet_to: set.quiet_to,
            };
            show(vec![inbox.put_contact(contact).await?], session)
        }
        Verb::List => show(inbox.contacts().await?, session),
        Verb::Delete(Delete { name }) => {
            inbox.delete_contact(&name).await?;
            match session.format {
                Format::Json => output::print_json(&Deleted { name, deleted: true }),
                Format::Table => {
                    output::note(&format!("nobody knows any more how {name} is reached"));
                    Ok(())
                }
            }
        }
    }
}

fn show(contacts: Vec<Contact>, session: &Session) -> anyhow::Result<()> {
    let contacts: Vec<ContactView> = contacts.into_iter().map(ContactView::from).collect();
    match session.format {
        Format::Json => output::print_json(&contacts),
        Format::Table => {
            let mut table = table::with_columns(&["NAME", "EMAIL", "WEBHOOK", "GROUPS", "CHANNELS", "QUIET"]);
            for contact in contacts {
                let quiet = match contact.quiet_from.as_str() {
                    "" => "-".to_owned(),
                    from => format!("{from}-{} {}", contact.quiet_to, contact.time_zone),
                };
                let channels =
                    if contact.channels.is_empty() { "all".to_owned() } else { contact.channels.join(", ") };
                let row = [
                    contact.name,
                    contact.email,
                    contact.webhook,
                    contact.groups.join(", "),
                    channels,
                    quiet,
                ];
                table.add_row(row);
            }
            output::print(&table::text(table))
        }
    }
}
