//! `kagzi promise …`: one file per verb.

mod beat;
mod complete;
mod fail;

use std::io::Read;

use anyhow::Context;
use kagzi::client::{Completed, PromiseHandle};
use serde::Serialize;

use crate::output::{self, Format};
use crate::run::find;
use crate::session::Session;

#[derive(clap::Subcommand)]
pub enum Verb {
    /// Complete a promise of a run: the code that waits for it goes on.
    Complete(complete::Args),
    /// Say that what was promised has failed.
    Fail(fail::Args),
    /// Say that whoever works on a promise lives.
    Beat(beat::Args),
}

pub async fn perform(verb: Verb, session: &Session) -> anyhow::Result<()> {
    match verb {
        Verb::Complete(args) => complete::perform(args, session).await,
        Verb::Fail(args) => fail::perform(args, session).await,
        Verb::Beat(args) => beat::perform(args, session).await,
    }
}

/// Which promise is meant.
#[derive(clap::Args)]
struct Which {
    /// Its token, or - to read the token from stdin; with --run, its name.
    promise: String,
    /// The run whose promise it is: a run id, a unique prefix of one, or a business id.
    #[arg(long, value_name = "ID")]
    run: Option<String>,
}

impl Which {
    async fn find(&self, session: &Session) -> anyhow::Result<PromiseHandle> {
        let client = session.client().await?;
        if let Some(run) = &self.run {
            return Ok(find::handle(&client, run).await?.promise(&self.promise));
        }
        if self.promise != "-" {
            return Ok(client.promise(&self.promise));
        }
        let mut token = String::new();
        std::io::stdin().read_to_string(&mut token).context("could not read the token from stdin")?;
        Ok(client.promise(token.trim()))
    }
}

#[derive(Serialize)]
struct Shown<'a> {
    run_id: &'a str,
    promise: &'a str,
    already_completed: bool,
}

fn print(completed: &Completed, how: &str, session: &Session) -> anyhow::Result<()> {
    let Completed { already, run_id, name, .. } = completed;
    match session.format {
        Format::Json => {
            output::print_json(&Shown { run_id, promise: name, already_completed: *already })?;
        }
        Format::Table if *already => {
            output::note(&format!("promise '{name}' of run {run_id} was over before; nothing was written"));
        }
        Format::Table => output::note(&format!("promise '{name}' of run {run_id} {how}")),
    }
    Ok(())
}
