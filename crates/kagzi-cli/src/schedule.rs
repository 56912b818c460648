//! `kagzi schedule …`: one file per verb.

mod backfill;
mod create;
mod delete;
mod list;
mod next;
mod pause;
mod resume;
mod runs;
mod show;
mod spec;
mod trigger;
mod update;
mod view;

use crate::session::Session;

#[derive(clap::Subcommand)]
pub enum Verb {
    /// Make a schedule.
    Create(create::Args),
    /// Change a schedule; what is not named stays as it is.
    Update(update::Args),
    /// Show one schedule.
    Show(show::Args),
    /// List schedules, newest first.
    List(list::Args),
    /// Remove a schedule; runs that it started go on.
    Delete(delete::Args),
    /// Hold a schedule, with a note for the others.
    Pause(pause::Args),
    /// Let a paused schedule go on.
    Resume(resume::Args),
    /// Start a run now, whatever the timetable says.
    Trigger(trigger::Args),
    /// Start runs for the times of a past range.
    Backfill(backfill::Args),
    /// Say when a schedule fires next, in words and in numbers; also of one that does not exist yet.
    Next(next::Args),
    /// List the runs that a schedule started, newest first.
    Runs(runs::Args),
}

pub async fn perform(verb: Verb, session: &Session) -> anyhow::Result<()> {
    match verb {
        Verb::Create(args) => create::perform(args, session).await,
        Verb::Update(args) => update::perform(args, session).await,
        Verb::Show(args) => show::perform(args, session).await,
        Verb::List(args) => list::perform(args, session).await,
        Verb::Delete(args) => delete::perform(args, session).await,
        Verb::Pause(args) => pause::perform(args, session).await,
        Verb::Resume(args) => resume::perform(args, session).await,
        Verb::Trigger(args) => trigger::perform(args, session).await,
        Verb::Backfill(args) => backfill::perform(args, session).await,
        Verb::Next(args) => next::perform(args, session).await,
        Verb::Runs(args) => runs::perform(args, session).await,
    }
}
