//! `kagzi worker …`: one file per verb.

mod drain;
mod list;
mod offline;
mod show;
pub mod view;

use crate::session::Session;

#[derive(clap::Subcommand)]
pub enum Verb {
    /// List workers, newest first.
    List(list::Args),
    /// Show one worker.
    Show(show::Args),
    /// Ask a worker to finish what it has and take nothing new.
    Drain(drain::Args),
    /// Take a worker out although it may live: its runs go to others at once.
    Offline(offline::Args),
}

pub async fn perform(verb: Verb, session: &Session) -> anyhow::Result<()> {
    match verb {
        Verb::List(args) => list::perform(args, session).await,
        Verb::Show(args) => show::perform(args, session).await,
        Verb::Drain(args) => drain::perform(args, session).await,
        Verb::Offline(args) => offline::perform(args, session).await,
    }
}
