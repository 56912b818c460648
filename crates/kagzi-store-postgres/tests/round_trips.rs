//! How often the lane waits for the database: as often for a thousand as for one. At a millisecond to the
//! database a round trip for each would be the whole lane.

mod database;
mod stage;

use std::time::Duration;

use database::Database;
use futures_util::future::join_all;
use kagzi_model::{
    Command, Failure, Payload, WorkerId, act,
    schedule::{NewSchedule, Overlap, Plan, ScheduleCommand, ScheduleKey, ScheduleRequest, Timing},
};
use kagzi_store::{Beat, LaneStats, Store, SweepKind};
use kagzi_store_postgres::{PostgresOptions, fixture};
use kagzi_store_tests::Stage;
use stage::{LEASE_MS, Server, namespace, next};
use uuid::Uuid;

const SOON: Duration = Duration::from_secs(20);
/// Workers and schedules, where there are many.
const MANY: usize = 1_000;

/// Commits and round trips of what is done.
async fn counted(store: &Store, done: impl Future<Output = ()>) -> (u64, u64) {
    let stats = store.stats();
    let before = (LaneStats::get(&stats.commits), LaneStats::get(&stats.round_trips));
    done.await;
    // The counts are told after the turn that answers: a turn more, and they are there.
    let told = LaneStats::get(&stats.round_trips);
    store.sweep(SweepKind::Probe {}).await.unwrap();
    let settled = async {
        while LaneStats::get(&stats.round_trips) == told {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, settled).await.unwrap();
    (LaneStats::get(&stats.commits) - before.0, LaneStats::get(&stats.round_trips) - before.1)
}

/// Workers with a run each, as they say in their heartbeats.
async fn busy_workers(server: &Server, len: usize) -> Vec<Beat> {
    let workers = join_all((0..len).map(|_| server.register("charge", 1))).await;
    let mut standing = join_all(workers.iter().map(|worker| server.stand_by(*worker, "charge"))).await;
    join_all((0..len).map(|_| server.start("charge"))).await;
    let mut beats = Vec::new();
    for (worker, assignments) in workers.iter().zip(&mut standing) {
        let lease = next(assignments, SOON).await.lease();
        beats.push(beat(*worker, vec![lease]));
    }
    // They stay.
    standing.into_iter().for_each(std::mem::forget);
    beats
}

fn beat(id: WorkerId, runs: Vec<kagzi_model::LeaseRef>) -> Beat {
    Beat {
        id,
        of: None,
        runs,
        lease_ms: LEASE_MS,
        unlisted_after_ms: None,
        reconnected: false,
        listed_before: Vec::new(),
    }
}

async fn beat_all(server: &Server, beats: Vec<Beat>) {
    let answers = join_all(beats.into_iter().map(|beat| server.store.ask(beat))).await;
    for answer in answers {
        assert_eq!(answer.unwrap().unwrap().lost.len(), 0);
    }
}

#[tokio::test]
async fn a_batch_of_heartbeats_takes_as_many_round_trips_as_one_heartbeat() {
    let server = Server::open(&fixture::database().await, PostgresOptions::default()).await;
    let beats = busy_workers(&server, MANY).await;

    let (commits, one) = counted(&server.store, beat_all(&server, beats[..1].to_vec())).await;
    assert!(commits <= 2 && one <= 4, "{commits} commits and {one} round trips for one");
    let (commits, many) = counted(&server.store, beat_all(&server, beats)).await;

    println!("{one} round trips for one heartbeat, {many} for {MANY} in {commits} commits");
    assert!(many <= 4 * commits + 4, "{many} round trips in {commits} commits");
    assert!(commits < MANY as u64 / 10, "{MANY} heartbeats share {commits} commits");
}

#[tokio::test]
async fn workers_that_come_back_all_at_once_share_their_round_trips() {
    let url = fixture::database().await;
    let beats = {
        let server = Server::open(&url, PostgresOptions::default()).await;
        let beats = busy_workers(&server, MANY).await;
        server.store_closed().await;
        beats
    };
    let server = Server::open(&url, PostgresOptions::default()).await;
    let of = Some((namespace(), "orders".into()));
    let hello = |beat: Beat| Beat { of: of.clone(), reconnected: true, unlisted_after_ms: Some(0), ..beat };

    let hellos = beats.into_iter().map(hello).collect();
    let (commits, trips) = counted(&server.store, beat_all(&server, hellos)).await;

    println!("{trips} round trips for {MANY} workers that come back, in {commits} commits");
    assert!(trips <= 6 * commits + 4, "{trips} round trips in {commits} commits");
    assert!(commits < MANY as u64 / 10, "{MANY} greetings share {commits} commits");
}

#[tokio::test]
async fn a_thousand_failing_runs_take_as_many_round_trips_as_two() {
    let server = Server::open(&fixture::database().await, PostgresOptions::default()).await;
    let worker = server.register("charge", 2 * MANY as u32).await;
    let mut assignments = server.stand_by(worker, "charge").await;
    join_all((0..MANY + 2).map(|_| server.start("charge"))).await;
    let mut fails = Vec::new();
    for _ in 0..MANY + 2 {
        let lease = next(&mut assignments, SOON).await.lease();
        let failure = Failure::new("TEST", "no");
        fails.push(lease.report(act::Fail { failure, step: None }));
    }
    let apply = async |commands: Vec<Command>| {
        let outcomes = server.store.apply(commands).await.unwrap();
        assert!(outcomes.iter().all(Result::is_ok));
    };

    let (_, two) = counted(&server.store, apply(fails.split_off(MANY))).await;
    let (_, many) = counted(&server.store, apply(fails)).await;

    assert_eq!(two, many);
}

/// Fires all that is due: how many runs, turns and round trips.
async fn fire(stage: &Stage) -> (usize, u64, u64) {
    let (mut runs, mut turns) = (0, 0);
    let sweep = async {
        loop {
            let kind = SweepKind::Schedules { schedules_max: MANY, runs_max: 2 * MANY };
            let swept = stage.store.sweep(kind).await.unwrap();
            (runs, turns) = (runs + swept.count, turns + 1);
            if !swept.more {
                break;
            }
        }
    };
    let (_, trips) = counted(&stage.store, sweep).await;
    (runs, turns, trips)
}

#[tokio::test]
async fn a_thousand_schedules_at_the_full_minute_take_as_many_round_trips_per_turn_as_one() {
    let stage = Stage::open(Database::fresh().await).await;
    let plan = Plan {
        timing: Timing::Interval { every_ms: 60_000, phase_ms: 0 },
        workflow_type: "charge".into(),
        task_queue: "orders".into(),
        options: Default::default(),
        labels: Default::default(),
        overlap: Overlap::Skip,
        jitter_ms: 0,
        max_catchup: 1,
    };
    let create = async |id: String| {
        let input = Payload::new(&b"1"[..]);
        let new = NewSchedule { uid: Uuid::now_v7(), plan: plan.clone(), input, paused: None };
        let key = ScheduleKey { namespace: stage.namespace.clone(), id: id.into() };
        let request = ScheduleRequest { key, command: ScheduleCommand::Create(Box::new(new)) };
        stage.store.schedule(request).await.unwrap().unwrap();
    };
    create("first".into()).await;
    stage.pass_ms(60_000);
    let (runs, turns, one) = fire(&stage).await;
    assert_eq!((runs, turns), (1, 1));
    join_all((1..MANY).map(|n| create(format!("another-{n}")))).await;
    stage.pass_ms(60_000);

    let (runs, turns, many) = fire(&stage).await;

    println!("{one} round trips for one schedule, {many} for {runs} in {turns} turns");
    // The first one passes its time over: its run still goes.
    assert_eq!(runs, MANY - 1);
    assert!(one <= 8 && many <= (one + 1) * turns, "{one} for one, {many} in {turns} turns");
}
