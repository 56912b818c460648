//! A run that polls for weeks costs each wake-up what is running, not what has ever happened.

mod sqlite_file;

use kagzi_model::{Command, LeaseRef, Payload, StepRef, StepResult, act};
use kagzi_store::LaneStats;
use kagzi_store_tests::{Stage, TYPE};
use sqlite_file::SqliteFile;

/// Two weeks of a look every minute.
const ROUNDS: u32 = 20_000;
/// Rounds at the beginning and at the end that are really parked and woken; those in between are under one
/// lease, so that the test needs no forty thousand commits.
const WOKEN: u32 = 100;

/// One look and one sleep, as the function of such a run reports them.
async fn round(stage: &Stage, lease: &LeaseRef, n: u32) {
    let step = |kind: &str, position| StepRef { path: format!("{kind}#{n}").into(), position };
    let look = lease.report(act::RecordStep(StepResult {
        step: step("look", n * 2),
        attempt: 1,
        result: Payload::new(&b"1"[..]),
        elapsed_ms: 0,
    }));
    let (nap, duration_ms, park) = (step("nap", n * 2 + 1), 60_000, true);
    let outcomes =
        stage.apply_all(vec![look, lease.report(act::Sleep { step: nap, duration_ms, park })]).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}

/// Rounds under one lease, a thousand commands in a commit.
async fn rounds_at_once(stage: &Stage, lease: &LeaseRef, from: u32, to: u32) {
    let step = |kind: &str, n, position| StepRef { path: format!("{kind}#{n}").into(), position };
    let commands: Vec<Command> = (from..to)
        .flat_map(|n| {
            let (lease, nap) = (lease.clone(), step("nap", n, n * 2 + 1));
            let over = nap.path.clone();
            [
                lease.report(act::RecordStep(StepResult {
                    step: step("look", n, n * 2),
                    attempt: 1,
                    result: Payload::new(&b"1"[..]),
                    elapsed_ms: 0,
                })),
                lease.report(act::Sleep { step: nap, duration_ms: 0, park: false }),
                lease.report(act::SleepOver { step: over }),
            ]
        })
        .collect();
    for portion in commands.chunks(999) {
        assert!(stage.apply_all(portion.to_vec()).await.iter().all(Result::is_ok));
    }
}

#[tokio::test]
async fn the_wake_ups_of_a_long_poll_loop_read_nothing_and_after_a_restart_the_history_once() {
    let mut stage = Stage::open(SqliteFile::fresh()).await;
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("watch").await;

    for n in 0..WOKEN {
        round(&stage, &standing.next().await.lease(), n).await;
        stage.pass_ms(60_000);
    }
    let lease = standing.next().await.lease();
    rounds_at_once(&stage, &lease, WOKEN, ROUNDS - WOKEN).await;
    round(&stage, &lease, ROUNDS - WOKEN).await;
    for n in ROUNDS - WOKEN + 1..ROUNDS {
        stage.pass_ms(60_000);
        round(&stage, &standing.next().await.lease(), n).await;
    }
    stage.pass_ms(60_000);
    let lease = standing.next().await.lease();

    let stats = stage.store.stats();
    assert_eq!(LaneStats::get(&stats.runs_loaded), 0, "memory has what is busy, however long it is");
    stage.reopen().await;
    let mut standing = stage.stand_by_as(standing.worker, &[TYPE]).await;
    round(&stage, &lease, ROUNDS).await;
    for n in ROUNDS + 1..ROUNDS + 10 {
        stage.pass_ms(60_000);
        round(&stage, &standing.next().await.lease(), n).await;
    }

    let stats = stage.store.stats();
    assert_eq!(LaneStats::get(&stats.runs_loaded), 1, "and reads it once after a restart");
    assert!(LaneStats::get(&stats.events_loaded) > u64::from(ROUNDS) * 3);
    assert_eq!(stage.run(run).await.dispatch_count, 2 * WOKEN + 10);
}
