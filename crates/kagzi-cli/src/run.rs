//! `kagzi run …`: one file per verb.

mod ask;
mod cancel;
mod event;
pub mod find;
mod history;
pub mod label;
mod list;
mod pending;
mod picture;
mod replay;
mod restart;
mod resume;
mod retry;
mod show;
mod signal;
mod start;
pub mod status;
mod step;
mod steps;
mod terminate;
mod tree;
mod value;
mod view;
mod wait;
pub mod wait_loop;
mod watch;
mod why;

use crate::session::Session;
pub use view::{RunView, some_text};

#[derive(clap::Subcommand)]
pub enum Verb {
    /// Start a run.
    Start(start::Args),
    /// List runs, newest first.
    List(list::Args),
    /// Show one run and its steps.
    Show(show::Args),
    /// List what a run's steps did, attempt by attempt.
    Steps(steps::Args),
    /// Show what happened to a run, oldest first.
    History(history::Args),
    /// Say in one sentence why a run is where it is.
    Why(why::Args),
    /// Show the runs that a run has started, and theirs.
    Tree(tree::Args),
    /// Tell a run something that its code waits for.
    Signal(signal::Args),
    /// Ask a run's code something and print its answer.
    Ask(ask::Args),
    /// Show what a run has published under a name.
    Value(value::Args),
    /// Cancel a run.
    Cancel(cancel::Args),
    /// Give a run up: it ends as FAILED at once, and its failure handler runs.
    Terminate(terminate::Args),
    /// Let a paused run, or one that waits for a retry, go on now.
    Resume(resume::Args),
    /// Retry now: a waiting retry begins at once, an ended run goes on from its failed step.
    Retry(retry::Args),
    /// Start a new run with the input of another.
    Restart(restart::Args),
    /// Retry or restart all ended runs that match, at a steady rate.
    Replay(replay::Args),
    /// Show what happens to a run while it happens, until it has ended.
    Watch(watch::Args),
    /// Wait until a run has ended and print its output.
    Wait(wait::Args),
}

pub async fn perform(verb: Verb, session: &Session) -> anyhow::Result<()> {
    match verb {
        Verb::Start(args) => start::perform(args, session).await,
        Verb::List(args) => list::perform(args, session).await,
        Verb::Show(args) => show::perform(args, session).await,
        Verb::Steps(args) => steps::perform(args, session).await,
        Verb::History(args) => history::perform(args, session).await,
        Verb::Why(args) => why::perform(args, session).await,
        Verb::Tree(args) => tree::perform(args, session).await,
        Verb::Signal(args) => signal::perform(args, session).await,
        Verb::Ask(args) => ask::perform(args, session).await,
        Verb::Value(args) => value::perform(args, session).await,
        Verb::Cancel(args) => cancel::perform(args, session).await,
        Verb::Terminate(args) => terminate::perform(args, session).await,
        Verb::Resume(args) => resume::perform(args, session).await,
        Verb::Retry(args) => retry::perform(args, session).await,
        Verb::Restart(args) => restart::perform(args, session).await,
        Verb::Replay(args) => replay::perform(args, session).await,
        Verb::Watch(args) => watch::perform(args, session).await,
        Verb::Wait(args) => wait::perform(args, session).await,
    }
}

/// The moment at which the samples of all snapshot tests are looked at.
#[cfg(test)]
pub use view::tests::{sample_now, sample_run};
