//! `kagzi note …`: where people find what to do about the runs of a workflow type.

use kagzi::admin::Note;
use serde::Serialize;

use crate::output::{self, Format};
use crate::paging::{Foot, Paging};
use crate::session::Session;
use crate::table;

#[derive(clap::Subcommand)]
pub enum Verb {
    /// Keep a note.
    Create {
        /// Whose runs it is about.
        workflow_type: String,
        /// Where it stands.
        link: String,
        /// Whom to ask.
        #[arg(long, default_value = "")]
        owner: String,
    },
    /// List notes by workflow type.
    List {
        #[command(flatten)]
        paging: Paging,
    },
    /// Delete a note.
    Delete {
        /// Whose runs it is about.
        workflow_type: String,
    },
}

#[derive(Serialize)]
struct View {
    workflow_type: String,
    link: String,
    owner: String,
}

impl From<Note> for View {
    fn from(book: Note) -> View {
        View { workflow_type: book.workflow_type, link: book.link, owner: book.owner }
    }
}

#[derive(Serialize)]
struct Page {
    notes: Vec<View>,
    #[serde(flatten)]
    foot: Foot,
}

pub async fn perform(verb: Verb, session: &Session) -> anyhow::Result<()> {
    let admin = session.admin().await?;
    match verb {
        Verb::Create { workflow_type, link, owner } => {
            let kept = View::from(admin.create_note(workflow_type, link, owner).await?);
            match session.format {
                Format::Json => output::print_json(&kept),
                Format::Table => output::print(&format!("kept the note of {}", kept.workflow_type)),
            }
        }
        Verb::List { paging } => {
            let list = admin.notes().page_size(paging.limit);
            let list = if paging.total { list.with_total() } else { list };
            let (notes, foot) = Foot::split(list.page(paging.token()).await?, &paging);
            let page = Page { notes, foot };
            match session.format {
                Format::Json => output::print_json(&page),
                Format::Table => {
                    output::print(&as_table(&page.notes))?;
                    page.foot.note();
                    Ok(())
                }
            }
        }
        Verb::Delete { workflow_type } => {
            admin.delete_note(&workflow_type).await?;
            match session.format {
                Format::Json => output::print_json(
                    &serde_json::json!({ "workflow_type": workflow_type, "deleted": true }),
                ),
                Format::Table => output::print(&format!("deleted the note of {workflow_type}")),
            }
        }
    }
}

fn as_table(notes: &[View]) -> String {
    let mut table = table::with_columns(&["TYPE", "LINK", "OWNER"]);
    for View { workflow_type, link, owner } in notes {
        table.add_row([workflow_type, link, owner]);
    }
    table::text(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_as_a_table() {
        let view = |workflow_type: &str, owner: &str| View {
            workflow_type: workflow_type.into(),
            link: format!("https://wiki.example/{workflow_type}"),
            owner: owner.into(),
        };

        let table = as_table(&[view("order", ""), view("refund", "payments")]);

        let lines: Vec<String> =
            table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines[0], "TYPE LINK OWNER");
        assert_eq!(lines.last().unwrap(), "refund https://wiki.example/refund payments");
    }
}
