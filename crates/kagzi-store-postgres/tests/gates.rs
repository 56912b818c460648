//! What an operator sets through one server holds for both, at every commit.

mod stage;

use std::{sync::Arc, time::Duration};

use kagzi_model::{
    Act, Author, Command, ControlRejection, Defaults, Gate, GateCommand, GateKey, Name, Namespace,
    NamespaceChange, NamespaceCommand, Rejection, RetryPolicy, RunKey, State, act,
};
use kagzi_store::{ChangeGate, ChangeNamespace, LaneStats, SweepKind};
use kagzi_store_postgres::{PostgresOptions, fixture};
use stage::{Server, complete, namespace, next};
use tokio_util::sync::CancellationToken;

const SOON: Duration = Duration::from_secs(10);

/// Two servers that hear each other and hardly ever poll: what comes soon came by a ring.
async fn pair() -> (String, Server, Server) {
    let url = fixture::database().await;
    let options = PostgresOptions { poll_ms: Some(60_000), ..PostgresOptions::default() };
    let (one, two) = tokio::join!(Server::open(&url, options.clone()), Server::open(&url, options));
    (url, one, two)
}

fn queue() -> GateKey {
    GateKey::queue(&namespace(), &"orders".into())
}

async fn gate(server: &Server, key: GateKey, command: GateCommand) -> Gate {
    server.store.ask(ChangeGate { key, command }).await.unwrap().unwrap()
}

async fn change(server: &Server, command: NamespaceCommand) -> Result<Namespace, ControlRejection> {
    server.store.ask(ChangeNamespace { name: namespace(), command, gate: None }).await.unwrap()
}

fn pause() -> GateCommand {
    GateCommand::Pause { by: "ada".into(), note: "deploy".into() }
}

fn limit(max_concurrent: u32) -> GateCommand {
    GateCommand::Limit { max_concurrent: Some(max_concurrent) }
}

/// Looks at the database again and again: the most runs that were leased at any of its commits we saw.
async fn watch(url: String, over: CancellationToken) -> u32 {
    let mut most = 0;
    while !over.is_cancelled() {
        let leased = "SELECT count(*) FROM kagzi.runs WHERE lease_worker IS NOT NULL";
        most = most.max(fixture::sql(&url, leased).await[0].parse().unwrap());
    }
    most
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_holds_over_two_servers_at_every_commit() {
    const RUNS: usize = 200;
    let (url, one, two) = pair().await;
    gate(&one, queue(), limit(3)).await;
    let (handed, mut hands) = tokio::sync::mpsc::unbounded_channel();
    let over = CancellationToken::new();
    let watching = tokio::spawn(watch(url.clone(), over.clone()));
    let servers = [Arc::new(one), Arc::new(two)];
    for server in &servers {
        for _ in 0..2 {
            let (server, handed) = (server.clone(), handed.clone());
            let worker = server.register("charge", 10).await;
            let mut assignments = server.stand_by(worker, "charge").await;
            tokio::spawn(async move {
                while let Some(assignment) = assignments.recv().await {
                    let ended = server.apply(complete(assignment.lease())).await;
                    ended.unwrap();
                    handed.send(assignment.run.id).unwrap();
                }
            });
        }
    }

    // Through both at once, so that both claim inside the commit of the start.
    for _ in 0..RUNS / 20 {
        let starts = || (0..10).map(|_| stage::start("charge")).collect();
        let (first, second) =
            tokio::join!(servers[0].store.apply(starts()), servers[1].store.apply(starts()));
        first.unwrap();
        second.unwrap();
    }
    for _ in 0..RUNS {
        tokio::time::timeout(Duration::from_secs(60), hands.recv())
            .await
            .expect("nothing is stranded")
            .unwrap();
    }

    over.cancel();
    let most = watching.await.unwrap();
    assert!((1..=3).contains(&most), "{most} runs were leased at once");
}

/// Commits of both servers as the database ordered them: a lock that every commit must hold is taken last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_claim_commits_after_a_pause_was_answered() {
    let (url, one, two) = pair().await;
    let worker = two.register("charge", 1_000).await;
    let mut assignments = two.stand_by(worker, "charge").await;
    let two = Arc::new(two);
    let starting = {
        let two = two.clone();
        tokio::spawn(async move {
            for _ in 0..100 {
                two.start("charge").await;
            }
        })
    };
    for _ in 0..20 {
        next(&mut assignments, SOON).await;
    }

    gate(&one, queue(), pause()).await;

    let claims = "SELECT count(*) FROM kagzi.events, generate_series(0, length(kinds) - 1) AS i
                   WHERE get_byte(kinds, i) = 2";
    let at_the_answer = fixture::sql(&url, claims).await;
    starting.await.unwrap();
    assert_eq!(fixture::sql(&url, claims).await, at_the_answer);
    gate(&one, queue(), GateCommand::Resume).await;
    for _ in 20..100 {
        next(&mut assignments, SOON).await;
    }
}

#[tokio::test]
async fn a_resume_through_one_server_is_heard_by_the_other() {
    let (_, one, two) = pair().await;
    let worker = two.register("charge", 1).await;
    let mut assignments = two.stand_by(worker, "charge").await;
    gate(&one, queue(), pause()).await;
    let run = two.start("charge").await;
    let waits = two.store.run(&namespace(), run).await.unwrap().unwrap().run.state;
    assert!(matches!(waits, State::Ready { .. }), "{waits:?}");

    gate(&one, queue(), GateCommand::Resume).await;

    assert_eq!(next(&mut assignments, SOON).await.run.id, run);
}

#[tokio::test]
async fn a_slot_freed_on_one_server_goes_to_a_worker_of_the_other() {
    let (_, one, two) = pair().await;
    gate(&two, queue(), limit(1)).await;
    let here = one.register("charge", 1).await;
    let mut first = one.stand_by(here, "charge").await;
    one.start("charge").await;
    let lease = next(&mut first, SOON).await.lease();
    // The worker here takes nothing more; the one there waits before the full gate.
    one.store.ask(kagzi_store::Drain { id: here }).await.unwrap().unwrap();
    let there = two.register("charge", 1).await;
    let mut second = two.stand_by(there, "charge").await;
    let run = two.start("charge").await;

    one.apply(complete(lease)).await.unwrap();

    assert_eq!(next(&mut second, SOON).await.run.id, run);
}

#[tokio::test]
async fn a_namespace_disabled_through_one_server_refuses_starts_on_both() {
    let (_, one, two) = pair().await;
    two.start("charge").await;

    change(&one, NamespaceCommand::Disable { by: "ada".into(), note: "unpaid".into() }).await.unwrap();
    let refused = two.apply(stage::start("charge")).await;
    change(&one, NamespaceCommand::Enable).await.unwrap();

    assert!(matches!(refused, Err(Rejection::NamespaceDisabled { .. })), "{refused:?}");
    // The other one remembers that it is disabled, and looks before it refuses.
    two.start("charge").await;
}

#[tokio::test]
async fn defaults_set_through_one_server_are_inherited_on_the_other() {
    let (_, one, two) = pair().await;
    two.start("charge").await;
    let retry = RetryPolicy { maximum_attempts: Some(7), ..RetryPolicy::default() };
    let defaults = Defaults { retry: retry.clone(), ..Defaults::default() };

    let set = NamespaceChange { defaults, ..NamespaceChange::default() };
    change(&one, NamespaceCommand::Update(set)).await.unwrap();
    let run = two.start("charge").await;

    let run = two.store.run(&namespace(), run).await.unwrap().unwrap().run;
    assert_eq!(run.options.retry, retry);
}

#[tokio::test]
async fn a_namespace_is_created_by_one_of_two_servers() {
    let (_, one, two) = pair().await;
    let create = |server: &'static str| {
        let description = Some(server.to_owned());
        let change = NamespaceChange { description, ..NamespaceChange::default() };
        ChangeNamespace { name: "shop".into(), command: NamespaceCommand::Create(change), gate: None }
    };

    let (first, second) = tokio::join!(one.store.ask(create("one")), two.store.ask(create("two")));

    let exists = Err(ControlRejection::Exists("shop".into()));
    let answers = [first.unwrap(), second.unwrap()];
    assert_eq!(answers.iter().filter(|answer| **answer == exists).count(), 1, "{answers:?}");
    // Made by first use on both at once, it is one as well.
    let start = || {
        let Act::Start(mut start) = stage::start("charge").act else { unreachable!() };
        start.namespace = "market".into();
        Command::start(start)
    };
    let (first, second) = tokio::join!(one.apply(start()), two.apply(start()));
    assert!(first.is_ok() && second.is_ok(), "{first:?} {second:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_delete_what_is_past_a_retention_together_and_each_run_once() {
    const OLD: usize = 350;
    let (url, one, two) = pair().await;
    let shop = Name::from("shop");
    let keep = NamespaceChange { retention_ms: Some(1), ..NamespaceChange::default() };
    let command = NamespaceCommand::Create(keep);
    one.store.ask(ChangeNamespace { name: shop.clone(), command, gate: None }).await.unwrap().unwrap();
    for (namespace, count) in [(&shop, OLD), (&namespace(), 10)] {
        let starts: Vec<_> = (0..count).map(|_| stage::start_in(namespace, "charge")).collect();
        let cancel =
            |run| RunKey::new(namespace.clone(), run).order(Author::new("tester", "asked to"), act::Cancel);
        let ends = starts.iter().map(|start| cancel(start.run.id)).collect();
        one.store.apply(starts).await.unwrap();
        one.store.apply(ends).await.unwrap().into_iter().for_each(|ended| drop(ended.unwrap()));
    }
    let left = async || fixture::sql(&url, "SELECT count(*) FROM kagzi.runs").await[0].clone();

    let sweep = async |server: &Server| {
        let kind = SweepKind::Retention { keep_ms: Some(90 * 24 * 3600 * 1000) };
        while left().await != "10" {
            server.store.sweep(kind).await.unwrap();
        }
        while server.store.sweep(kind).await.unwrap().more {}
    };
    tokio::time::timeout(SOON * 6, async { tokio::join!(sweep(&one), sweep(&two)) }).await.unwrap();

    let retired = [&one, &two].map(|server| LaneStats::get(&server.store.stats().runs_retired));
    assert_eq!(retired[0] + retired[1], OLD as u64, "{retired:?}");
    let events = fixture::sql(&url, "SELECT count(DISTINCT run_id) FROM kagzi.events").await;
    assert_eq!(events[0], "10", "events go with their runs");
}
