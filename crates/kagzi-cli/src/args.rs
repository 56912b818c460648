use crate::Verb;
use crate::address::Address;
use crate::output::Format;
use clap::{Args, Parser};

/// Kagzi: workflows that survive.
#[derive(Parser)]
#[command(name = "kagzi", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub verb: Verb,
}

const EXIT_CODES: &str = "\
Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict, 7 server unreachable.
New here? Try: kagzi demo";

/// What every verb understands.
#[derive(Args)]
pub struct Global {
    /// The server to talk to.
    #[arg(
        long,
        global = true,
        env = "KAGZI_ADDRESS",
        default_value = "127.0.0.1:50051",
        value_name = "ADDR"
    )]
    pub address: Address,
    /// The namespace to work in.
    #[arg(long, global = true, env = "KAGZI_NAMESPACE", default_value = "default", value_name = "NAME")]
    pub namespace: String,
    /// How to print data.
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_options_are_accepted_after_the_verb() {
        let cli = Cli::try_parse_from(["kagzi", "run", "list", "-o", "json", "--address", "10.0.0.1:7000"])
            .unwrap();

        assert_eq!(cli.global.output, Format::Json);
        assert_eq!(cli.global.address.to_string(), "10.0.0.1:7000");
    }

    #[test]
    fn an_unknown_verb_is_a_usage_error() {
        let error = Cli::try_parse_from(["kagzi", "fly"]).err().unwrap();

        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn bench_takes_either_options_or_a_subcommand() {
        assert!(
            Cli::try_parse_from(["kagzi", "bench", "--workload", "w10", "--runs", "10", "--json"]).is_ok()
        );
        assert!(Cli::try_parse_from(["kagzi", "bench", "limits", "--json"]).is_ok());
        assert!(Cli::try_parse_from(["kagzi", "bench", "--runs", "10", "limits"]).is_err());
    }
}
