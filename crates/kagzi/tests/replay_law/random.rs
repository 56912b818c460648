//! Random programs, with a worker that dies after every report: each of them goes on by a replay after each
//! commit. Most are tried on the store in memory, some on a file.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use kagzi::client::RunStatus;
use kagzi::testing::{Crashes, crash_on_file, crash_while_signalled};

use crate::execute::{echo, workflow};
use crate::program::{Node, program, streams};

/// Programs that are tried unless `SEEDS` says otherwise; `SEED` tries one and prints it.
const SEEDS: u64 = 1_000;
/// The same without a crash: only parks and retries are replayed.
const SEEDS_UNDISTURBED: u64 = 300;
/// With a crash after every report on a SQLite file of its own.
const SEEDS_ON_FILES: u64 = 150;
/// Programs of unordered streams, with and without a crash, and on files.
const SEEDS_OF_STREAMS: [u64; 3] = [300, 300, 50];
/// Operations that each program has at least.
const OPERATIONS: usize = 8;
/// Programs that are tried at once.
const AT_ONCE: usize = 8;
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes the program of a seed.
type Make = fn(u64, usize) -> Node;

/// Where the runs are kept.
#[derive(Debug, Clone, Copy)]
enum Store {
    Memory,
    File,
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// What went wrong with the program of this seed, if anything did, and how often its worker died.
async fn try_program(make: Make, seed: u64, store: Store, crashes: Crashes) -> (Option<String>, u32, u32) {
    let program = Arc::new(make(seed, OPERATIONS));
    let register = {
        let workflow = workflow(program.clone());
        move |worker: &mut kagzi::Worker| {
            worker.register("program", workflow.clone()).register("echo", echo);
        }
    };
    let words = (0..seed % 9).map(|word| ("word".to_owned(), word.into())).collect();
    let trial = async {
        match store {
            Store::Memory => crash_while_signalled(register, "program", (), crashes, words).await,
            Store::File => {
                let home = tempfile::tempdir().expect("a directory for the file");
                crash_on_file(&home.path().join("kagzi.db"), register, "program", crashes, words).await
            }
        }
    };
    let told = |what: String| Some(format!("seed {seed}: {what}\n{program:#?}"));
    match tokio::time::timeout(PATIENCE, trial).await {
        Err(_) => (told("hangs".to_owned()), 0, 0),
        Ok(trial) => {
            let run = trial.history.run();
            let wrong = match run.status {
                RunStatus::Completed => None,
                _ => told(format!("{}", trial.history)),
            };
            (wrong, trial.crashes, run.dispatch_count)
        }
    }
}

async fn try_all(make: Make, store: Store, crashes: Crashes, seeds: u64) {
    let first = number("FIRST_SEED").unwrap_or(0);
    let seeds = match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => first..first + number("SEEDS").unwrap_or(seeds),
    };
    let mut counts = BTreeMap::new();
    for seed in seeds.clone() {
        let program = make(seed, OPERATIONS);
        assert!(program.operations() >= OPERATIONS);
        program.count(&mut counts);
    }

    let tried = stream::iter(seeds.clone())
        .map(|seed| tokio::spawn(try_program(make, seed, store, crashes)))
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<_>>()
        .await;

    let tried: Vec<_> = tried.into_iter().map(|tried| tried.expect("the trial does not panic")).collect();
    let deaths: u32 = tried.iter().map(|(_, deaths, _)| deaths).sum();
    let dispatches: u32 = tried.iter().map(|(_, _, dispatches)| dispatches).sum();
    let wrong: Vec<_> = tried.iter().filter_map(|(wrong, ..)| wrong.as_ref()).collect();
    println!("{} programs, {deaths} deaths of workers, {dispatches} executions", tried.len());
    counts.iter().for_each(|(construct, count)| println!("{construct:>32} {count}"));
    for wrong in &wrong {
        println!("{}", wrong.lines().next().unwrap_or_default());
    }
    if let Some(first) = wrong.first() {
        panic!("{} of {} programs went wrong, the first:\n{first}", wrong.len(), tried.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_programs_end_although_their_worker_dies_after_every_report() {
    try_all(program, Store::Memory, Crashes::AfterEveryReport, SEEDS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_programs_end_without_a_crash() {
    try_all(program, Store::Memory, Crashes::Never, SEEDS_UNDISTURBED).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_programs_on_a_file_end_although_their_worker_dies_after_every_report() {
    try_all(program, Store::File, Crashes::AfterEveryReport, SEEDS_ON_FILES).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unordered_streams_hand_out_in_the_order_of_the_record_although_their_worker_dies() {
    try_all(streams, Store::Memory, Crashes::AfterEveryReport, SEEDS_OF_STREAMS[0]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unordered_streams_hand_out_in_the_order_of_the_record_without_a_crash() {
    try_all(streams, Store::Memory, Crashes::Never, SEEDS_OF_STREAMS[1]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unordered_streams_on_a_file_hand_out_in_the_order_of_the_record() {
    try_all(streams, Store::File, Crashes::AfterEveryReport, SEEDS_OF_STREAMS[2]).await;
}
