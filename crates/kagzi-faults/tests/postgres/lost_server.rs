//! One of two servers is killed; whoever was connected to it moves on to the other.

use futures_util::future::{join, join_all};
use kagzi::Client;
use kagzi_faults::{Evidence, Pace, Phase, QUEUE, Script, Stage, StepResult, eventually, stage};
use kagzi_store_postgres::fixture;

use crate::{addresses, turn};

const CLIENTS: usize = 4;
const RUNS_EACH: usize = 60;
const STEPS: [&str; 3] = ["a", "b", "c"];
const RUNS: usize = CLIENTS * RUNS_EACH;

async fn executions(stage: &Stage, count: usize) {
    eventually(&format!("{count} executions"), async || {
        let began = stage.log.read().into_iter().filter(|seen| seen.phase == Phase::Began).count();
        (began >= count).then_some(())
    })
    .await;
}

/// Starts runs one after the other and waits for each, as a program with a list of addresses does.
async fn use_client(client: Client, number: usize) {
    for n in 0..RUNS_EACH {
        let start = client.workflow("script", QUEUE, Script::steps(&STEPS)).id(format!("order-{number}-{n}"));
        let handle = start.await.unwrap_or_else(|error| panic!("client {number} start {n}: {error}"));
        let results: Vec<StepResult> =
            handle.result().await.unwrap_or_else(|error| panic!("client {number} run {n}: {error}"));
        assert_eq!(results.len(), STEPS.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_costs_neither_a_run_nor_a_second_execution_nor_an_error() {
    let _turn = turn().await;
    let one = stage!(Pace::Steady, fixture::database().await);
    let two = one.sibling().await;
    let lists = [addresses(&one, &two), addresses(&two, &one)];
    let _workers = [
        one.worker_at(&lists[0], &["--max-concurrent", "20"]).await,
        one.worker_at(&lists[1], &["--max-concurrent", "20"]).await,
    ];
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        clients.push(Client::connect(&lists[number % 2]).await.unwrap());
    }

    let kills = async {
        let total = RUNS * STEPS.len();
        for (victim, moment) in
            [(&one, total / 8), (&two, total / 3), (&one, total / 2), (&two, total * 3 / 4)]
        {
            executions(&one, moment).await;
            victim.kill_server().await;
            // The other one has the work to itself for a while.
            executions(&one, moment + 20).await;
            victim.restart_server().await;
        }
    };
    let clients = clients.into_iter().enumerate().map(|(number, client)| use_client(client, number));
    join(join_all(clients), kills).await;

    two.kill_server().await;
    let all = RUNS * STEPS.len();
    let found = one.close().await;
    assert_eq!(found, Evidence { runs: RUNS, completed: RUNS, results: all, executions: all });
}
