//! `kagzi handling …`: what is done about failures.

mod explain;
mod rules;

use crate::output::Format;

#[derive(clap::Subcommand)]
pub enum Verb {
    /// Say what is done about a failure, and where each word of it comes from.
    Explain(explain::Args),
}

pub fn perform(verb: Verb, format: Format) -> anyhow::Result<()> {
    match verb {
        Verb::Explain(args) => explain::perform(args, format),
    }
}
