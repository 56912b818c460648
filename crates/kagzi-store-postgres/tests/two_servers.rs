//! Two servers on one database.

mod stage;

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use kagzi_model::{
    Act, Author, Command, Done, Payload, Rejection, Reply, RunId, RunKey, Started, Status, Timestamp,
    WorkerId, WorkerStatus, act,
};
use kagzi_store::{Beat, CutOff, Deregister, Drain, Finished, LaneStats, LostLease, Observer, SweepKind};
use kagzi_store_postgres::{PostgresOptions, fixture};
use stage::{LEASE_MS, Server, complete, namespace, next, record};

const SOON: Duration = Duration::from_secs(5);

async fn pair(options: PostgresOptions) -> (String, Server, Server) {
    let url = fixture::database().await;
    let (one, two) = tokio::join!(Server::open(&url, options.clone()), Server::open(&url, options));
    (url, one, two)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_run_is_handed_out_twice() {
    const RUNS: usize = 500;
    let (url, one, two) = pair(PostgresOptions::default()).await;
    let (handed, mut hands) = tokio::sync::mpsc::unbounded_channel();
    let servers = [Arc::new(one), Arc::new(two)];
    for server in &servers {
        for _ in 0..3 {
            let (server, handed) = (server.clone(), handed.clone());
            let worker = server.register("charge", 7).await;
            let mut assignments = server.stand_by(worker, "charge").await;
            tokio::spawn(async move {
                while let Some(assignment) = assignments.recv().await {
                    let lease = assignment.lease();
                    handed.send((lease.run, lease.epoch)).unwrap();
                    let commands = vec![record(lease.clone(), "pay", 0), complete(lease)];
                    let outcomes = server.store.apply(commands).await.unwrap();
                    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
                }
            });
        }
    }

    // All through one server: the other is rung.
    for _ in 0..RUNS / 50 {
        let starts = (0..50).map(|_| stage::start("charge")).collect();
        servers[0].store.apply(starts).await.unwrap();
    }
    let mut seen: HashMap<RunId, u64> = HashMap::new();
    while seen.len() < RUNS {
        let (run, epoch) =
            tokio::time::timeout(Duration::from_secs(20), hands.recv()).await.unwrap().unwrap();
        assert_eq!(seen.insert(run, epoch), None, "run {run} was handed out twice");
    }
    tokio::time::sleep(Duration::from_millis(300)).await;

    let unfinished = "SELECT count(*) FROM kagzi.runs WHERE status <> 4";
    assert_eq!(fixture::sql(&url, unfinished).await, ["0"]);
    let gaps = "SELECT count(*) FROM (SELECT run_id FROM kagzi.events GROUP BY run_id
                 HAVING max(first_seq + length(kinds)) <> 1 + sum(length(kinds)) OR sum(length(kinds)) <> \
                 4) AS odd";
    assert_eq!(fixture::sql(&url, gaps).await, ["0"]);
    let leases: Vec<u64> =
        servers.iter().map(|server| LaneStats::get(&server.store.stats().leases)).collect();
    assert_eq!(leases.iter().sum::<u64>(), RUNS as u64);
    assert!(leases[1] > 0, "the other server had a share: {leases:?}");
}

#[tokio::test]
async fn a_cancel_on_one_server_stops_the_writes_through_the_other() {
    let (_, one, two) = pair(PostgresOptions::default()).await;
    let worker = one.register("charge", 1).await;
    let mut assignments = one.stand_by(worker, "charge").await;
    let run = one.start("charge").await;
    let lease = next(&mut assignments, SOON).await.lease();
    one.apply(record(lease.clone(), "first", 0)).await.unwrap();

    let cancel = RunKey::new(namespace(), run).order(Author::new("tester", "no more"), act::Cancel);
    two.apply(cancel).await.unwrap();
    let late = one.apply(record(lease.clone(), "second", 1)).await;
    let later = one.apply(complete(lease)).await;

    assert_eq!(late, Err(Rejection::Ended { run, status: Status::Cancelled }));
    assert_eq!(later, Err(Rejection::Ended { run, status: Status::Cancelled }));
    assert_eq!(LaneStats::get(&one.store.stats().conflicts), 1);
}

#[tokio::test]
async fn an_answer_that_writes_nothing_is_not_given_from_an_old_memory() {
    let (_, one, two) = pair(PostgresOptions::default()).await;
    let worker = one.register("charge", 1).await;
    let mut assignments = one.stand_by(worker, "charge").await;
    let run = one.start("charge").await;
    let lease = next(&mut assignments, SOON).await.lease();
    let begin = |position| {
        lease.report(act::BeginStep {
            step: kagzi_model::StepRef { path: "first".into(), position },
            timeout_ms: None,
            standard_ms: None,
            policy: Default::default(),
        })
    };
    one.apply(begin(0)).await.unwrap();

    two.apply(RunKey::new(namespace(), run).order(Author::new("tester", "no"), act::Cancel)).await.unwrap();
    let again = one.apply(begin(0)).await;

    assert_eq!(again, Err(Rejection::Ended { run, status: Status::Cancelled }));
}

#[tokio::test]
async fn a_worker_that_moves_to_the_other_server_keeps_its_lease() {
    let (_, one, two) = pair(PostgresOptions::default()).await;
    let first = one.register("charge", 1).await;
    let mut assignments = one.stand_by(first, "charge").await;
    let run = one.start("charge").await;
    let old = next(&mut assignments, SOON).await.lease();
    // The first server remembers the run as leased under the old epoch.
    one.apply(record(old.clone(), "first", 0)).await.unwrap();

    two.store.ask(Deregister { id: first }).await.unwrap().unwrap();
    let second = two.register("charge", 1).await;
    let mut assignments = two.stand_by(second, "charge").await;
    let new = next(&mut assignments, SOON).await.lease();
    let moved = one.apply(record(new.clone(), "second", 1)).await;
    let stale = one.apply(record(old.clone(), "third", 2)).await;

    assert_eq!(moved, Ok(Reply::Done(Done { already: false })));
    assert_eq!(stale, Err(Rejection::StaleEpoch { run, named: old.epoch, current: new.epoch }));
}

/// Race: one server writes a sign of life over what another one has just written of the same worker. The
/// version of the row makes the later one decide again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_here_never_undoes_a_drain_there() {
    let (_, one, two) = pair(PostgresOptions::default()).await;

    for _ in 0..30 {
        let id = one.register("charge", 1).await;
        let beat = || Beat {
            id,
            of: None,
            runs: Vec::new(),
            lease_ms: LEASE_MS,
            unlisted_after_ms: None,
            reconnected: false,
            listed_before: Vec::new(),
        };
        let (first, drained, second) =
            tokio::join!(one.store.ask(beat()), two.store.ask(Drain { id }), one.store.ask(beat()));
        assert!(first.unwrap().is_ok() && drained.unwrap().is_ok() && second.unwrap().is_ok());

        let view = two.store.worker_by_id(&namespace(), id).await.unwrap().unwrap();
        assert_eq!(view.worker.status, WorkerStatus::Draining);
    }
}

#[tokio::test]
async fn a_heartbeat_hears_of_what_the_other_server_did() {
    let (_, one, two) = pair(PostgresOptions::default()).await;
    let worker = one.register("charge", 2).await;
    let mut assignments = one.stand_by(worker, "charge").await;
    let (lost, kept) = (one.start("charge").await, one.start("charge").await);
    let leases = [next(&mut assignments, SOON).await.lease(), next(&mut assignments, SOON).await.lease()];

    two.apply(RunKey::new(namespace(), lost).order(Author::new("tester", "no"), act::Cancel)).await.unwrap();
    two.store.ask(Drain { id: worker }).await.unwrap().unwrap();
    let beat = Beat {
        id: worker,
        of: None,
        runs: leases.to_vec(),
        lease_ms: LEASE_MS,
        unlisted_after_ms: Some(1000),
        reconnected: false,
        listed_before: Vec::new(),
    };
    let answer = one.store.ask(beat).await.unwrap().unwrap();

    assert_eq!(answer.lost.iter().map(|(lease, _)| lease.run).collect::<Vec<_>>(), [lost]);
    assert_eq!(answer.status, WorkerStatus::Draining);
    let view = one.store.worker_by_id(&namespace(), worker).await.unwrap().unwrap();
    assert_eq!((view.active, view.worker.status), (1, WorkerStatus::Draining));
    assert!(one.store.run(&namespace(), kept).await.unwrap().unwrap().run.lease().is_some());
}

#[tokio::test]
async fn a_slot_freed_by_the_other_server_is_used_again() {
    let (_, one, two) = pair(PostgresOptions::default()).await;
    let worker = one.register("charge", 1).await;
    let mut assignments = one.stand_by(worker, "charge").await;
    let first = one.start("charge").await;
    next(&mut assignments, SOON).await;
    let second = one.start("charge").await;

    two.apply(RunKey::new(namespace(), first).order(Author::new("tester", "no"), act::Cancel)).await.unwrap();
    let beat = Beat {
        id: worker,
        of: None,
        runs: Vec::new(),
        lease_ms: LEASE_MS,
        unlisted_after_ms: None,
        reconnected: false,
        listed_before: Vec::new(),
    };
    one.store.ask(beat).await.unwrap().unwrap();

    assert_eq!(next(&mut assignments, SOON).await.run.id, second);
}

/// Runs that are leased at this moment.
async fn leased(url: &str) -> usize {
    let sql = "SELECT count(*) FROM kagzi.runs WHERE lease_worker IS NOT NULL";
    fixture::sql(url, sql).await[0].parse().unwrap()
}

#[tokio::test]
async fn a_worker_that_stands_by_at_two_servers_never_holds_more_than_it_may() {
    let (url, one, two) = pair(PostgresOptions { poll_ms: Some(50), ..PostgresOptions::default() }).await;
    let worker = one.register("charge", 1).await;
    // It connected to the second server while the first has not noticed that its stream is dead.
    let mut dead = one.stand_by(worker, "charge").await;
    let mut alive = two.stand_by(worker, "charge").await;

    // Both servers see every run and look for work again and again.
    for server in [&one, &two] {
        for _ in 0..10 {
            server.start("charge").await;
        }
    }
    for left in (0..20).rev() {
        let assignment = next(&mut alive, SOON).await;
        assert_eq!(leased(&url).await, 1, "with {left} runs to go");
        two.apply(complete(assignment.lease())).await.unwrap();
    }

    assert!(dead.try_recv().is_err(), "nothing went into the dead stream");
}

#[tokio::test]
async fn a_living_stream_takes_its_place_back_with_its_heartbeat() {
    let (_, one, two) = pair(PostgresOptions::default()).await;
    let worker = one.register("charge", 1).await;
    let mut assignments = one.stand_by(worker, "charge").await;
    // A greeting that was given up long ago reaches the other server at last.
    drop(two.stand_by(worker, "charge").await);

    let run = one.start("charge").await;
    let beat = Beat {
        id: worker,
        of: None,
        runs: Vec::new(),
        lease_ms: LEASE_MS,
        unlisted_after_ms: None,
        reconnected: false,
        listed_before: Vec::new(),
    };
    one.store.ask(beat).await.unwrap().unwrap();

    assert_eq!(next(&mut assignments, SOON).await.run.id, run);
}

#[tokio::test]
async fn a_run_that_a_failed_claim_elsewhere_held_is_found_long_before_the_poll() {
    let url = fixture::database().await;
    let options = PostgresOptions { poll_ms: Some(60_000), ..PostgresOptions::default() };
    let server = Server::open(&url, options).await;
    let run = server.start("charge").await;
    let worker = server.register("charge", 1).await;
    // What a claim of another server does, up to the commit that fails.
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("BEGIN; SELECT FROM kagzi.runs FOR UPDATE").await.unwrap();

    let mut assignments = server.stand_by(worker, "charge").await;
    assert!(assignments.try_recv().is_err(), "it is passed over");
    client.batch_execute("ROLLBACK").await.unwrap();

    assert_eq!(next(&mut assignments, SOON).await.run.id, run);
}

#[tokio::test]
async fn polls_of_one_worker_on_two_servers_are_both_served() {
    let (url, one, two) = pair(PostgresOptions { poll_ms: Some(50), ..PostgresOptions::default() }).await;
    let worker = one.register("charge", 2).await;

    for round in 1..=5 {
        let mut polls = [one.poll(worker, "charge").await, two.poll(worker, "charge").await];
        one.start("charge").await;
        one.start("charge").await;
        let leases = [next(&mut polls[0], SOON).await.lease(), next(&mut polls[1], SOON).await.lease()];
        assert_eq!(leased(&url).await, 2, "round {round}");
        for lease in leases {
            two.apply(complete(lease)).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_lease_of_a_lost_server_is_swept_by_the_other_whatever_it_remembers() {
    let (url, one, two) = pair(PostgresOptions::default()).await;
    let run = two.start("charge").await;
    // Two remembers the run as waiting; one leases it and is gone.
    let worker = one.register("charge", 1).await;
    let mut assignments = one.stand_by(worker, "charge").await;
    next(&mut assignments, SOON).await;
    one.store.close().await;
    let over = "UPDATE kagzi.runs SET sweep_at = 1,
                       state = regexp_replace(state, '\"until\":[0-9]+', '\"until\":1')";
    fixture::sql(&url, over).await;

    let swept = two.store.sweep(SweepKind::Expired { now: Timestamp::MAX, leap: None }).await.unwrap();
    let again = two.store.sweep(SweepKind::Expired { now: Timestamp::MAX, leap: None }).await.unwrap();

    assert_eq!((swept.count, again.count), (1, 0));
    let run = two.store.run(&namespace(), run).await.unwrap().unwrap().run;
    assert_eq!((run.state.status(), run.crashes), (Status::Pending, 1));
}

#[tokio::test]
async fn one_business_id_names_one_run_on_both_servers() {
    let (url, one, two) = pair(PostgresOptions::default()).await;
    let named = || {
        let Act::Start(mut start) = stage::start("charge").act else { unreachable!() };
        start.business_id = Some("order-42".into());
        Command::start(start)
    };

    for _ in 0..20 {
        let (first, second) = tokio::join!(one.apply(named()), two.apply(named()));
        let run = |reply: Reply| match reply {
            Reply::Started(Started { run, .. }) => run,
            other => panic!("{other:?}"),
        };
        assert_eq!(run(first.unwrap()), run(second.unwrap()));
        fixture::sql(&url, "UPDATE kagzi.runs SET business_id = NULL").await;
    }
}

/// How long a run that one server starts waits for a worker on the other.
async fn across(options: PostgresOptions) -> Duration {
    let (_, one, two) = pair(options).await;
    let worker = two.register("charge", 10).await;
    let mut assignments = two.stand_by(worker, "charge").await;
    // The other server has looked and found nothing, and listens.
    tokio::time::sleep(Duration::from_millis(300)).await;

    let began = Instant::now();
    let run = one.start("charge").await;
    let assignment = next(&mut assignments, Duration::from_secs(10)).await;

    assert_eq!(assignment.run.id, run);
    began.elapsed()
}

#[tokio::test]
async fn a_notification_wakes_the_other_server_long_before_the_poll() {
    let waited = across(PostgresOptions { poll_ms: Some(60_000), ..PostgresOptions::default() }).await;

    assert!(waited < SOON, "{waited:?}");
}

#[tokio::test]
async fn without_notifications_the_poll_finds_the_work() {
    let options = PostgresOptions { notify: false, poll_ms: Some(400), ..PostgresOptions::default() };

    let waited = across(options).await;

    assert!(waited < SOON, "{waited:?}");
}

#[tokio::test]
async fn a_listener_that_was_cut_off_looks_everywhere_when_it_is_back() {
    let (url, one, two) = pair(PostgresOptions { poll_ms: Some(60_000), ..PostgresOptions::default() }).await;
    let worker = two.register("charge", 10).await;
    let mut assignments = two.stand_by(worker, "charge").await;
    tokio::time::sleep(Duration::from_millis(300)).await;

    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND query ILIKE 'LISTEN%'";
    fixture::sql(&url, cut).await;
    let run = one.start("charge").await;

    assert_eq!(next(&mut assignments, SOON).await.run.id, run);
}

#[tokio::test]
async fn a_renewal_through_the_other_server_is_noticed_by_the_rows_version() {
    let (_, one, two) = pair(PostgresOptions::default()).await;
    let worker = one.register("charge", 1).await;
    let mut assignments = one.stand_by(worker, "charge").await;
    one.start("charge").await;
    let lease = next(&mut assignments, SOON).await.lease();

    // No event, only a new version of the row: the number of the next event is still free.
    let until = kagzi_model::Timestamp(i64::MAX / 2);
    two.apply(lease.report(act::Renew { until })).await.unwrap();
    let ended = one.apply(complete(lease)).await;

    assert!(ended.is_ok(), "{ended:?}");
    assert_eq!(LaneStats::get(&one.store.stats().conflicts), 1);
}

#[tokio::test]
async fn what_happens_on_one_server_is_told_on_the_other() {
    let url = fixture::database().await;
    let told = Arc::new(Told::default());
    let one = Server::observed(&url, PostgresOptions::default(), told.clone()).await;
    let two = Server::open(&url, PostgresOptions::default()).await;
    let worker = one.register("charge", 1).await;
    let mut assignments = one.stand_by(worker, "charge").await;
    let cancelled = one.start("charge").await;
    next(&mut assignments, SOON).await;
    tokio::time::sleep(Duration::from_millis(300)).await;

    two.apply(RunKey::new(namespace(), cancelled).order(Author::new("tester", "no"), act::Cancel))
        .await
        .unwrap();

    let heard = || told.lost.lock().contains(&(worker, cancelled)) && told.ended.lock().contains(&cancelled);
    let began = Instant::now();
    while !heard() {
        assert!(began.elapsed() < SOON, "nothing was told");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[derive(Default)]
struct Told {
    lost: parking_lot::Mutex<Vec<(WorkerId, RunId)>>,
    ended: parking_lot::Mutex<Vec<RunId>>,
}

impl Observer for Told {
    fn finished(&self, _: Finished) {}

    fn lease_lost(&self, lost: LostLease) {
        self.lost.lock().push((lost.worker, lost.run));
    }

    fn ended_elsewhere(&self, runs: &[RunId]) {
        self.ended.lock().extend(runs);
    }
}

#[tokio::test]
async fn a_worker_whose_connection_broke_here_keeps_its_runs_if_it_stands_by_at_another_server() {
    let (_, one, two) = pair(PostgresOptions::default()).await;
    let (moved, lost) = (one.register("charge", 1).await, one.register("refund", 1).await);
    let (kept, taken) = (one.start("charge").await, one.start("refund").await);
    next(&mut one.poll(moved, "charge").await, SOON).await;
    next(&mut one.poll(lost, "refund").await, SOON).await;
    let _standing = two.stand_by(moved, "charge").await;

    let mut runs = Vec::new();
    for id in [moved, lost] {
        let cut_off = CutOff { id, since: Timestamp::MAX };
        runs.push(one.store.ask(cut_off).await.unwrap().unwrap());
    }

    assert_eq!(runs, [0, 1]);
    let lease = async |run| one.store.run(&namespace(), run).await.unwrap().unwrap().run.lease().cloned();
    assert_eq!(lease(kept).await.map(|lease| lease.worker), Some(moved));
    assert_eq!(lease(taken).await, None);
}

/// One server remembers the input that the run began with, the other one lets it begin anew.
#[tokio::test]
async fn a_run_that_continued_through_another_server_is_given_out_with_its_new_input() {
    let (_, one, two) = pair(PostgresOptions::default()).await;
    // Room enough: that a lease ended through the other server is heard of with a heartbeat only.
    let worker = one.register("endless", 9).await;
    let mut assignments = one.stand_by(worker, "endless").await;
    let run = one.start("endless").await;
    let mut lease = next(&mut assignments, SOON).await.lease();

    for generation in 2..6_u32 {
        let input = Payload::new(generation.to_string().into_bytes());
        let through = if generation % 2 == 0 { &two } else { &one };
        // One that does nothing else would be put off.
        through.apply(record(lease.clone(), "work", 0)).await.unwrap();
        through.apply(lease.report(act::Continue { steps: vec![], input: input.clone() })).await.unwrap();
        let given = next(&mut assignments, SOON).await;

        assert_eq!((given.run.id, given.run.generation, given.fresh), (run, generation, true));
        assert!(given.input.as_ref().is_none_or(|told| *told == input), "{:?} in {generation}", given.input);
        let view = one.store.run(&namespace(), run).await.unwrap().unwrap();
        assert_eq!(view.input, Some(input));
        lease = given.lease();
    }
    two.apply(complete(lease)).await.unwrap();
}
