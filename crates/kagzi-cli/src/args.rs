use crate::address::Address;
use crate::output::Format;
use crate::{
    backup, bench, completions, config, demo, dev, ns, promise, queue, restore, run, schedule, serve, top,
    verify, worker,
};
use clap::{Args, Parser, Subcommand};

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

#[derive(Subcommand)]
pub enum Verb {
    /// Run a server for development, keeping its data in one directory.
    Dev(dev::Args),
    /// Run a server.
    Serve(serve::Args),
    /// Start, watch and stop runs.
    #[command(subcommand)]
    Run(run::Verb),
    /// Start runs by the clock: make schedules, look at them, hold them.
    #[command(subcommand)]
    Schedule(schedule::Verb),
    /// Look at workers, drain them and take them offline.
    #[command(subcommand)]
    Worker(worker::Verb),
    /// See how full the queues are; pause, resume and limit them.
    #[command(subcommand)]
    Queue(queue::Verb),
    /// Complete what a run has promised to itself, with the token that its code gave out.
    #[command(subcommand)]
    Promise(promise::Verb),
    /// Create, change and disable namespaces.
    #[command(subcommand)]
    Ns(ns::Verb),
    /// Show the configuration, or print one to start from.
    #[command(subcommand)]
    Config(config::Verb),
    /// Watch queues, workers, runs and rates live.
    Top(top::Args),
    /// Copy the SQLite database into a file while the server runs.
    Backup(backup::Args),
    /// Put a backup where a server will look for its database.
    Restore(restore::Args),
    /// Check a SQLite database or a backup: the file, and what Kagzi promises about its runs.
    Verify(verify::Args),
    /// Check that the server is well and that every run has a worker.
    Doctor,
    /// Watch a run survive the death of its worker: a tour of half a minute.
    Demo,
    /// Measure runs per second and latency, and the limits of this machine.
    Bench(bench::Args),
    /// Print a completion script for a shell.
    Completions(completions::Args),
    /// The worker that `demo` starts and kills.
    #[command(hide = true)]
    DemoWorker(demo::worker::Args),
    /// The worker that `bench` starts.
    #[command(hide = true)]
    BenchWorker(bench::WorkerArgs),
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
