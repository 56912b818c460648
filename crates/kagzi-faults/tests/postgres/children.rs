//! Parents and children while one of two servers dies: every child is started once, every result arrives, and
//! nobody is left behind.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use kagzi_faults::{
    Execution, Fate, Move, Pace, Phase, Script, Stage, StepResult, eventually, eventually_within, stage,
};
use kagzi_proto::v1::EventKind;
use kagzi_store_postgres::fixture;

use crate::{addresses, count, turn};

/// Far above what a thousand children take on two busy cores, unoptimised.
const PATIENCE: Duration = Duration::from_secs(120);

/// So many, or another number by hand, e.g. `KAGZI_CHILDREN=5000`.
fn children(usually: usize) -> usize {
    let given = std::env::var("KAGZI_CHILDREN").ok();
    given.map_or(usually, |text| text.parse().expect("KAGZI_CHILDREN is a number"))
}

fn began(stage: &Stage) -> Vec<Execution> {
    stage.log.read().into_iter().filter(|seen| seen.phase == Phase::Began).collect()
}

async fn executions(stage: &Stage, count: usize) {
    eventually_within(PATIENCE, &format!("{count} executions"), async || {
        (began(stage).len() >= count).then_some(())
    })
    .await;
}

/// How often the run lost its worker.
async fn losses(stage: &Stage, run: &str) -> usize {
    let history = stage.whole_history(run).await;
    history.iter().filter(|event| event.kind() == EventKind::LeaseLost).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parent_hears_of_every_child_once_although_servers_are_killed() {
    let _turn = turn().await;
    let (children, url) = (children(1_000), fixture::database().await);
    let one = stage!(Pace::Steady, url.clone());
    let two = one.sibling().await;
    let _workers = [
        one.worker_at(addresses(&one, &two), &["--max-concurrent", "20"]).await,
        one.worker_at(addresses(&two, &one), &["--max-concurrent", "20"]).await,
    ];
    let family = Move::Children { count: children, script: Script::steps(&["a"]), fate: Fate::Awaited };
    let parent = one.start(&Script::default().then(family)).await;

    for (victim, moment) in [(&one, children / 10), (&two, children / 2)] {
        executions(&one, moment).await;
        victim.kill_server().await;
        executions(&one, moment + children / 10).await;
        victim.restart_server().await;
    }
    let left = "SELECT count(*) FROM kagzi.runs WHERE status <> 4";
    eventually_within(PATIENCE, "all end", async || count(&url, left).await.filter(|left| *left == 0)).await;

    let ended = one.completed(&parent).await;
    let output = ended.output.expect("it returned something").data;
    let results: Vec<StepResult> = serde_json::from_slice(&output).unwrap();
    let told: HashSet<&str> = results.iter().map(|result| result.nonce.as_str()).collect();
    assert_eq!((results.len(), told.len()), (children, children), "every result, and each of another child");
    let history = one.whole_history(&parent).await;
    let count_of = |kind| history.iter().filter(|event| event.kind() == kind).count();
    assert_eq!((count_of(EventKind::ChildStarted), count_of(EventKind::RunCompleted)), (children, 1));
    let mut by_run: HashMap<String, usize> = HashMap::new();
    for execution in began(&one) {
        *by_run.entry(execution.run).or_default() += 1;
    }
    for (run, times) in by_run.iter().filter(|(_, times)| **times > 1) {
        assert!(*times <= 1 + losses(&one, run).await, "{run} was executed {times} times");
    }
    two.kill_server().await;
    let found = one.close().await;
    assert_eq!((found.runs, found.completed, found.results), (children + 1, children + 1, children));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_of_an_ended_parent_are_closed_although_the_server_that_closes_them_is_killed() {
    let _turn = turn().await;
    let (children, url) = (children(300), fixture::database().await);
    let one = stage!(Pace::Steady, url.clone());
    let two = one.sibling().await;
    let _worker = one.worker_at(addresses(&two, &one), &[]).await;
    let asleep = Script::default().then(Move::Sleep { ms: 3_600_000 });
    let family = |count, fate| Move::Children { count, script: asleep.clone(), fate };
    let script = Script::default().then(family(children, Fate::Closed)).then(family(1, Fate::Abandoned));
    let parent = one.start(&script.then(Move::Gate { name: "end".into() })).await;
    let sleeping = "SELECT count(*) FROM kagzi.runs WHERE status = 3";
    let all = children as i64 + 1;
    let sleep = async || count(&url, sleeping).await.filter(|sleeping| *sleeping == all);
    eventually_within(PATIENCE, "all children sleep", sleep).await;

    one.log.open_gate("end");
    let cancelled = "SELECT count(*) FROM kagzi.runs WHERE status = 6";
    eventually("the first are closed", async || count(&url, cancelled).await.filter(|some| *some > 0)).await;
    two.kill_server().await;
    one.kill_server().await;
    let closed_first = count(&url, cancelled).await;
    one.restart_server().await;

    let closed = async || count(&url, cancelled).await.filter(|closed| *closed == children as i64);
    eventually_within(PATIENCE, "all are closed", closed).await;
    one.completed(&parent).await;
    println!("{closed_first:?} of {children} were closed when the servers died");
    assert_eq!(count(&url, sleeping).await, Some(1), "the one that was abandoned sleeps on");
    let found = one.close().await;
    assert_eq!((found.runs, found.completed), (children + 2, 1));
}
