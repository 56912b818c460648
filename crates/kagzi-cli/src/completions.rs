use crate::args::Cli;
use crate::output;
use clap::CommandFactory;
use clap_complete::Shell;

#[derive(clap::Args)]
pub struct Args {
    /// The shell to complete for.
    #[arg(value_enum)]
    shell: Shell,
}

pub fn perform(args: Args) -> anyhow::Result<()> {
    output::print(&script(args.shell))
}

fn script(shell: Shell) -> String {
    // Into memory first: clap_complete panics when its writer fails, and a reader may leave early.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "kagzi", &mut script);
    String::from_utf8(script).expect("completion scripts are UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_completes_the_verbs() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell, Shell::Elvish] {
            assert!(script(shell).contains("doctor"), "{shell}");
        }
    }
}
