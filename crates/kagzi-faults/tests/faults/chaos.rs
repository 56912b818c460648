//! Processes killed at random while much is going on. A failing seed prints itself.

use std::time::Duration;

use futures_util::{StreamExt, future, stream};
use kagzi_faults::{Evidence, Pace, Phase, Script, Stage, eventually, stage, start_request};

const RUNS: usize = 200;
const STEPS: usize = 3;

/// A number that differs from run to run, unless `KAGZI_FAULTS_SEED` repeats one.
fn seed() -> u64 {
    let given = std::env::var("KAGZI_FAULTS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0);
    println!("repeat with KAGZI_FAULTS_SEED={seed}");
    seed
}

/// Rising numbers of executions at which something is killed.
fn moments(mut seed: u64, count: usize) -> Vec<usize> {
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).expect("31 bits")
    };
    let mut moments: Vec<_> = (0..count).map(|_| 10 + next() % (RUNS * STEPS - 60)).collect();
    moments.sort_unstable();
    moments
}

/// Starts all runs, each until it is acknowledged, as a careful client does: with a business id.
async fn start_all(stage: &Stage) -> Vec<String> {
    let starts = (0..RUNS).map(|n| async move {
        let mut request = start_request("script", &Script::steps(&["a", "b", "c"]));
        request.business_id = format!("order-{n}");
        eventually("an acknowledged start", async || stage.start_with(request.clone()).await.ok())
            .await
            .run_id
    });
    stream::iter(starts).buffered(16).collect().await
}

async fn executions(stage: &Stage, count: usize) {
    eventually(&format!("{count} executions"), async || {
        let began = stage.log.read().into_iter().filter(|e| e.phase == Phase::Began).count();
        (began >= count).then_some(())
    })
    .await;
}

async fn all_complete(stage: &Stage, runs: &[String]) {
    future::join_all(runs.iter().map(|run| stage.completed(run))).await;
}

#[tokio::test]
async fn a_server_killed_at_random_under_load_loses_nothing_and_does_nothing_twice() {
    let stage = stage!(Pace::Steady);
    let workers = [stage.worker(&[]).await, stage.worker(&["--max-concurrent", "20"]).await];

    let kills = async {
        for moment in moments(seed(), 5) {
            executions(&stage, moment).await;
            stage.kill_server().await;
            stage.restart_server().await;
        }
    };
    let (runs, ()) = future::join(start_all(&stage), kills).await;
    all_complete(&stage, &runs).await;

    // No worker died and all came back within the grace, so nothing had to be executed again, except a run
    // whose delivery was lost with the server: such a run had not begun.
    let found = stage.close().await;
    drop(workers);
    let all = Evidence { runs: RUNS, completed: RUNS, results: RUNS * STEPS, executions: RUNS * STEPS };
    assert_eq!(found, all);
}

#[tokio::test]
async fn servers_and_workers_killed_at_random_lose_nothing() {
    let stage = stage!(Pace::Fast);
    let mut workers = vec![stage.worker(&[]).await, stage.worker(&["--max-concurrent", "20"]).await];

    let kills = async {
        for (at, moment) in moments(seed(), 6).into_iter().enumerate() {
            executions(&stage, moment).await;
            if at % 2 == 0 {
                workers.remove(0).kill().await;
                workers.push(stage.spawn_worker(stage.address, &[]));
            } else {
                stage.kill_server().await;
                stage.restart_server().await;
            }
        }
    };
    let (runs, ()) = future::join(start_all(&stage), kills).await;
    all_complete(&stage, &runs).await;

    let found = stage.close().await;
    assert_eq!((found.runs, found.completed, found.results), (RUNS, RUNS, RUNS * STEPS));
    assert!(found.executions >= RUNS * STEPS);
}

#[tokio::test]
async fn a_server_terminated_under_load_ends_soon_and_loses_nothing() {
    let stage = stage!(Pace::Steady);
    let _workers = [stage.worker(&[]).await, stage.worker(&["--max-concurrent", "20"]).await];

    let stop = async {
        executions(&stage, 100).await;
        let mut server = stage.take_server();
        server.terminate();
        let ended = tokio::time::timeout(Duration::from_secs(5), server.ended()).await;
        assert!(ended.expect("within a few seconds").success(), "{}", server.said());
        stage.restart_server().await;
    };
    let (runs, ()) = future::join(start_all(&stage), stop).await;
    all_complete(&stage, &runs).await;

    let found = stage.close().await;
    assert_eq!((found.runs, found.completed, found.results), (RUNS, RUNS, RUNS * STEPS));
}
