//! The `kagzi` command: a server, a client for people and scripts, a guided tour and a benchmark.

mod args;
mod backup;
mod bench;
mod completions;
mod config;
mod config_args;
mod database_file;
mod demo;
mod dev;
mod doctor;
mod event;
mod exit;
mod handling;
mod inbox;
mod input;
mod logs;
mod ns;
mod once;
mod paging;
mod payload;
mod promise;
mod queue;
mod reach;
mod restore;
mod run;
mod schedule;
mod serve;
mod session;
mod time_text;
mod top;
mod trigger;
mod verify;
mod worker;

use args::Cli;
use clap::{Parser, Subcommand};
use kagzi_shell::{address, child, output, stop, table, terminal};
use session::Session;
use std::process::ExitCode;

// Ten per cent less processor time for w3 than with glibc's allocator (four sittings of 15,000 runs);
// jemalloc is as good.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Subcommand)]
enum Verb {
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
    /// Publish events to all runs that wait for them, and see what is kept.
    #[command(subcommand)]
    Event(event::Verb),
    /// Start a run for every event on a topic: make triggers, list them, delete them.
    #[command(subcommand)]
    Trigger(trigger::Verb),
    /// See what runs ask people, and answer.
    Inbox(inbox::Args),
    /// See what is done once for everybody, by its key.
    #[command(subcommand)]
    Once(once::Verb),
    /// Create, change and disable namespaces.
    #[command(subcommand)]
    Ns(ns::Verb),
    /// See what is done about failures.
    #[command(subcommand)]
    Handling(handling::Verb),
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

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    match perform(cli).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::report(&error),
    }
}

async fn perform(cli: Cli) -> anyhow::Result<()> {
    let session = Session::new(cli.global);
    match cli.verb {
        Verb::Dev(args) => dev::perform(args).await,
        Verb::Serve(args) => serve::perform(args).await,
        Verb::Run(verb) => run::perform(verb, &session).await,
        Verb::Promise(verb) => promise::perform(verb, &session).await,
        Verb::Event(verb) => event::perform(verb, &session).await,
        Verb::Trigger(verb) => trigger::perform(verb, &session).await,
        Verb::Inbox(args) => inbox::perform(args, &session).await,
        Verb::Schedule(verb) => schedule::perform(verb, &session).await,
        Verb::Worker(verb) => worker::perform(verb, &session).await,
        Verb::Queue(verb) => queue::perform(verb, &session).await,
        Verb::Once(verb) => once::perform(verb, &session).await,
        Verb::Ns(verb) => ns::perform(verb, &session).await,
        Verb::Handling(verb) => handling::perform(verb, session.format),
        Verb::Config(verb) => config::perform(verb, session.format),
        Verb::Top(args) => top::perform(args, &session).await,
        Verb::Backup(args) => backup::perform(args, &session).await,
        Verb::Restore(args) => restore::perform(args, &session).await,
        Verb::Verify(args) => verify::perform(args, &session).await,
        Verb::Doctor => doctor::perform(&session).await,
        Verb::Demo => demo::perform().await,
        Verb::Bench(args) => bench::perform(args, &session).await,
        Verb::Completions(args) => completions::perform(args),
        Verb::DemoWorker(args) => demo::worker::perform(args, &session).await,
        Verb::BenchWorker(args) => bench::perform_worker(args, &session).await,
    }
}
