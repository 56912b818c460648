//! `kagzi queue …`: one file per verb.

mod gate_args;
mod limit;
mod list;
mod pause;
mod resume;
mod show;
mod types;
pub mod view;
mod watch;

use crate::session::Session;

#[derive(clap::Subcommand)]
pub enum Verb {
    /// List queues: what is ready, waits and runs, and for how long the oldest has been ready.
    List(list::Args),
    /// Show one queue, type by type.
    Show(show::Args),
    /// List the workflow types that are known: by a living run, a worker of now or lately, or a gate.
    Types,
    /// Claim nothing more of a queue, or of one type on it; what runs goes on.
    Pause(pause::Args),
    /// Let a paused queue, or one type on it, go on.
    Resume(resume::Args),
    /// Limit how many runs of a queue, or of one type on it, execute at once over all workers and servers.
    Limit(limit::Args),
}

pub async fn perform(verb: Verb, session: &Session) -> anyhow::Result<()> {
    match verb {
        Verb::List(args) => list::perform(args, session).await,
        Verb::Show(args) => show::perform(args, session).await,
        Verb::Types => types::perform(session).await,
        Verb::Pause(args) => pause::perform(args, session).await,
        Verb::Resume(args) => resume::perform(args, session).await,
        Verb::Limit(args) => limit::perform(args, session).await,
    }
}
