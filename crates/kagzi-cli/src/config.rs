mod example;
mod show;

use crate::output::Format;

#[derive(clap::Subcommand)]
pub enum Verb {
    /// Show every value that a server started here would use, and where it comes from.
    Show(show::Args),
    /// Print a configuration file with every key, its meaning and its default.
    Example,
}

pub fn perform(verb: Verb, format: Format) -> anyhow::Result<()> {
    match verb {
        Verb::Show(args) => show::perform(args, format),
        Verb::Example => example::perform(),
    }
}
