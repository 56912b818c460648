//! A database that is restarted at random.

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::{Duration, Instant},
};

use futures_util::future::{join, join_all};
use kagzi_faults::{Evidence, Pace, Script, Stage, eventually_within, stage, start_request};
use kagzi_store_postgres::fixture;
use tonic::Code;

use crate::{addresses, count, turn};

const STEPS: [&str; 2] = ["a", "b"];

/// Two minutes; longer by hand, e.g. `KAGZI_RESTARTS_SECONDS=1200`.
fn duration() -> Duration {
    let given = std::env::var("KAGZI_RESTARTS_SECONDS").ok();
    let seconds = given.map_or(120, |text| text.parse().expect("KAGZI_RESTARTS_SECONDS is a number"));
    Duration::from_secs(seconds)
}

/// Differs from run to run, unless `KAGZI_FAULTS_SEED` repeats one.
struct Dice(u64);

impl Dice {
    fn cast() -> Dice {
        let given = std::env::var("KAGZI_FAULTS_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0);
        println!("repeat with KAGZI_FAULTS_SEED={seed}");
        Dice(seed)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// What a careful client saw.
#[derive(Default)]
struct Seen {
    started: AtomicUsize,
    unavailable: AtomicUsize,
}

/// Starts runs at a walking pace until the time is over, each until it is acknowledged.
async fn start_runs(stage: &Stage, client: usize, until: Instant, seen: &Seen) {
    let mut pace = tokio::time::interval(Duration::from_millis(50));
    for n in 0.. {
        pace.tick().await;
        if Instant::now() >= until {
            return;
        }
        let mut request = start_request("script", &Script::steps(&STEPS));
        request.business_id = format!("order-{client}-{n}");
        while let Err(status) = stage.start_with(request.clone()).await {
            assert_eq!(status.code(), Code::Unavailable, "{status:?}");
            let hint = status.metadata().get("grpc-retry-pushback-ms").expect("a retry hint");
            let wait_ms = hint.to_str().unwrap().parse().unwrap();
            seen.unavailable.fetch_add(1, Relaxed);
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        }
        seen.started.fetch_add(1, Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_restarted_at_random_costs_time_and_nothing_else() {
    let _turn = turn().await;
    let mut database = fixture::Server::private();
    let url = database.url();
    let one = stage!(Pace::Calm, url.clone());
    let two = one.sibling().await;
    let _workers =
        [one.worker_at(addresses(&one, &two), &[]).await, one.worker_at(addresses(&two, &one), &[]).await];

    let until = Instant::now() + duration();
    let seen = Seen::default();
    let clients = join_all((0..4).map(|n| start_runs(if n % 2 == 0 { &one } else { &two }, n, until, &seen)));
    let restarts = async {
        let mut dice = Dice::cast();
        let (mut crashes, mut restarts) = (0, 0);
        while Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(3_000 + dice.below(5_000))).await;
            match dice.below(2) {
                0 => {
                    crashes += 1;
                    database.crash();
                }
                _ => {
                    restarts += 1;
                    database.restart();
                }
            }
            // The next one hits a database that works, not one that is still recovering.
            let answers = async || count(&url, "SELECT 1::bigint").await;
            eventually_within(Duration::from_secs(60), "the database is back", answers).await;
        }
        (crashes, restarts)
    };
    let (_, (crashes, restarts)) = join(clients, restarts).await;
    let (started, unavailable) = (seen.started.into_inner(), seen.unavailable.into_inner());
    println!(
        "{started} runs started, {crashes} crashes, {restarts} restarts, {unavailable} times UNAVAILABLE"
    );
    let left = "SELECT count(*) FROM kagzi.runs WHERE status <> 4";
    let nothing = async || count(&url, left).await.filter(|left| *left == 0);
    eventually_within(Duration::from_secs(120), "all runs end", nothing).await;

    assert!(crashes + restarts >= 5 && started > 100 && unavailable > 0, "something must have happened");
    two.kill_server().await;
    let all = started * STEPS.len();
    let found = one.close().await;
    assert_eq!(found, Evidence { runs: started, completed: started, results: all, executions: all });
}
