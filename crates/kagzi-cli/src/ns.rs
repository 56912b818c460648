//! `kagzi ns …`: one file per verb.

mod create;
mod disable;
mod enable;
mod list;
mod show;
mod update;
mod values;
pub mod view;

use crate::session::Session;

#[derive(clap::Subcommand)]
pub enum Verb {
    /// Create a namespace with its own defaults and limits.
    Create(create::Args),
    /// List namespaces by name.
    List(list::Args),
    /// Show one namespace.
    Show(show::Args),
    /// Change defaults and limits; what is not named stays.
    Update(update::Args),
    /// Refuse new runs; those that live go on.
    Disable(disable::Args),
    /// Take new runs again.
    Enable(enable::Args),
}

pub async fn perform(verb: Verb, session: &Session) -> anyhow::Result<()> {
    match verb {
        Verb::Create(args) => create::perform(args, session).await,
        Verb::List(args) => list::perform(args, session).await,
        Verb::Show(args) => show::perform(args, session).await,
        Verb::Update(args) => update::perform(args, session).await,
        Verb::Disable(args) => disable::perform(args, session).await,
        Verb::Enable(args) => enable::perform(args, session).await,
    }
}
