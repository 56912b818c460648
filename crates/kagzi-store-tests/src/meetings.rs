//! What meets what: signals, waits, children and generations that come at the same moment, row by row.
//!
//! - a signal before its wait: `signals::a_signal_that_comes_early_waits_for_its_wait`
//! - two signals, one wait: `of_two_signals_for_one_wait_the_first_is_taken_and_the_second_lies_there`
//! - the same signal again, elsewhere, with another payload:
//!   `a_signal_that_says_something_else_the_second_time_counts_once`; `kept_signals`; two servers:
//!   `kagzi-store-postgres::signals`
//! - a signal at the instant of the timeout:
//!   `signals::the_timeout_and_a_signal_at_the_same_instant_have_one_winner`,
//!   `signals_at_once::a_signal_in_the_commit_of_the_timeout_is_taken_or_lies_there`
//! - a signal while the park is on its way:
//!   `signals::a_signal_that_comes_while_the_park_is_on_its_way_is_not_slept_through`,
//!   `signals_at_once::a_signal_in_the_commit_of_a_park_is_told_and_taken_once`
//! - a signal while another server has the stream, and its hint is lost:
//!   `kagzi-store-postgres::signals::a_signal_whose_hint_was_lost_is_heard_at_the_next_park`
//! - a worker dies after it was told: `what_a_worker_took_before_it_died_is_told_to_its_heir`
//! - a losing wait takes a signal before it is closed:
//!   `signals::a_wait_that_the_code_dropped_at_its_end_gives_its_signal_back`
//! - a decided race, and the server dies before the winner's last result: `kagzi/tests/replay_law`:
//!   random programs, also on a file
//! - the end and a signal:
//!   `signals_at_once::a_signal_in_the_commit_of_the_end_is_told_and_kept_or_refused`
//! - a child ends before anybody awaits it:
//!   `children::a_child_that_ends_first_is_taken_by_whoever_asks_or_parks`
//! - a child's end and its parent's cancel:
//!   `the_end_of_a_child_and_the_cancel_of_its_parent_have_one_order`
//! - the parent's worker dies between the report of a child and its answer:
//!   `the_heir_of_a_worker_that_never_heard_of_its_child_finds_that_child`; with processes:
//!   `kagzi-faults::crash_points`
//! - a child's business id is taken:
//!   `children::a_child_whose_id_another_run_has_is_not_started_and_its_parent_is_told`
//! - a parent with many children is cancelled:
//!   `a_cancelled_parent_of_very_many_closes_them_in_bounded_pieces`
//! - continuing and signals without pause:
//!   `generations::signals_without_pause_and_a_run_that_continues_without_pause_lose_nothing`
//! - a thousand children end at once: `a_thousand_children_that_end_at_once_wake_their_parent_once`; two
//!   servers: `kagzi-store-postgres::children`

use std::collections::HashSet;

use kagzi_model::{
    Author, Command, Payload, Reply, RunKey, State, Status, Waited, Wake, act, limits::CLOSED_PER_TURN,
};
use kagzi_store::{RunFilter, SweepKind};

use crate::{
    Stage,
    children::{began, child, complete, ends, park},
    signals::{TOLD_BEFORE, signal, taken, wait},
    stage::{LEASE_MS, in_time},
};

fn told(step: &str, what: &str) -> (String, String) {
    (step.to_owned(), what.to_owned())
}

pub async fn of_two_signals_for_one_wait_the_first_is_taken_and_the_second_lies_there(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(wait(&lease, "item", "item", None)).await;
    stage.ok(park(&lease, &["item"], Wake::First)).await;

    let both = vec![signal(&stage, run, "item", "tea"), signal(&stage, run, "item", "milk")];
    assert!(stage.apply_all(both).await.iter().all(Result::is_ok));

    assert_eq!(taken(&stage, run).await, [told("item", "tea")]);
    let lease = standing.next().await.lease();
    stage.ok(wait(&lease, "item#2", "item", None)).await;
    assert_eq!(taken(&stage, run).await, [told("item", "tea"), told("item#2", "milk")]);
}

pub async fn a_signal_that_says_something_else_the_second_time_counts_once(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(signal(&stage, run, "item", "tea")).await;

    let payload = Payload::new(&b"something else"[..]);
    let other = act::Signal { channel: "item".into(), id: "tea".into(), payload, failure: None };
    let again = || RunKey::new(stage.namespace.clone(), run).order(Author::new("tester", ""), other.clone());
    assert_eq!(stage.ok(again()).await, TOLD_BEFORE);
    stage.ok(wait(&lease, "item", "item", None)).await;
    assert_eq!(stage.ok(again()).await, TOLD_BEFORE, "taken, and still known");

    assert_eq!(taken(&stage, run).await, [told("item", "tea")], "what was said first stays");
    let none = stage.ok(wait(&lease, "item#2", "item", None)).await;
    assert_eq!(none, Reply::Waited(Waited::Until(None)));
}

pub async fn a_run_that_wants_all_of_its_signals_takes_all_that_lie_there(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    for path in ["first", "second"] {
        stage.ok(wait(&lease, path, "item", None)).await;
    }
    stage.ok(signal(&stage, run, "item", "tea")).await;
    stage.ok(signal(&stage, run, "item", "milk")).await;

    stage.ok(park(&lease, &["first", "second"], Wake::Last)).await;

    assert_eq!(standing.next().await.run.epoch, 2, "all that it waits for is there");
    assert_eq!(taken(&stage, run).await, [told("first", "tea"), told("second", "milk")]);
}

pub async fn a_run_that_wants_all_and_waits_for_time_too_goes_on_with_the_first(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(wait(&lease, "item", "item", None)).await;
    // One that runs when its worker parks is never heard of again: nobody may wait for its end.
    stage.ok(stage.begin(&lease, "charge")).await;
    stage.ok(park(&lease, &["item", "charge"], Wake::Last)).await;

    stage.ok(signal(&stage, run, "item", "tea")).await;

    assert_eq!(standing.next().await.run.epoch, 2);
    assert_eq!(taken(&stage, run).await, [told("item", "tea")]);
}

pub async fn what_a_worker_took_before_it_died_is_told_to_its_heir(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(signal(&stage, run, "item", "tea")).await;
    stage.ok(signal(&stage, run, "item", "milk")).await;
    let answer = stage.ok(wait(&lease, "item", "item", None)).await;

    stage.pass_ms(LEASE_MS.cast_unsigned() + 1);
    stage.sweep_expired().await;
    stage.pass_ms(60_000);
    stage.settle().await;
    let heir = standing.next().await.lease();

    assert_eq!(heir.run, run);
    assert_eq!(taken(&stage, run).await, [told("item", "tea")], "the journal has it");
    assert_eq!(stage.ok(wait(&heir, "item", "item", None)).await, answer, "and who asks is told the same");
    stage.ok(wait(&heir, "item#2", "item", None)).await;
    assert_eq!(taken(&stage, run).await, [told("item", "tea"), told("item#2", "milk")]);
}

pub async fn the_end_of_a_child_and_the_cancel_of_its_parent_have_one_order(stage: Stage) {
    for (name, cancelled_first) in [("order-1", true), ("order-2", false)] {
        let mut standing = stage.stand_by(2).await;
        let parent = stage.start(name).await;
        let lease = standing.next().await.lease();
        let child = began(&stage, &lease, child(&stage, &lease, "ship")).await;
        let of_child = standing.next().await.lease();
        stage.ok(park(&lease, &["ship"], Wake::First)).await;

        let mut both = vec![stage.cancel(parent), complete(&of_child, "shipped")];
        if !cancelled_first {
            both.reverse();
        }
        assert!(stage.apply_all(both).await.iter().all(Result::is_ok), "both are told that it is done");
        stage.sweep_expired().await;

        assert_eq!(stage.run(parent).await.state.status(), Status::Cancelled);
        assert_eq!(stage.run(child).await.state, State::Completed, "nobody closes what has ended");
        let heard = if cancelled_first { vec![] } else { vec!["ship: shipped".to_owned()] };
        assert_eq!(ends(&stage, parent).await, heard);
        stage.settle().await;
        assert!(standing.ready().is_none(), "nobody is given an ended run");
    }
}

pub async fn the_heir_of_a_worker_that_never_heard_of_its_child_finds_that_child(stage: Stage) {
    let mut standing = stage.stand_by(2).await;
    let parent = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let child = began(&stage, &lease, child(&stage, &lease, "ship")).await;
    let of_child = standing.next().await.lease();
    // The answer never arrives, and the worker is gone.
    stage.ok(stage.release(&lease)).await;

    let heir = standing.next().await.lease();
    assert_eq!((heir.run, heir.epoch), (parent, 2));
    let again = began(&stage, &heir, crate::children::child(&stage, &heir, "ship")).await;
    assert_eq!(again, child);
    stage.ok(complete(&of_child, "shipped")).await;
    // Once more, and it has ended meanwhile: the answer says so.
    let last = stage.ok(heir.report(crate::children::child(&stage, &heir, "ship"))).await;
    let Reply::ChildBegan(last) = last else { panic!("{last:?}") };
    assert_eq!(
        (last.child, last.waited),
        (child, Some(Waited::Until(None))),
        "its end is for a wait to take"
    );
    stage.ok(park(&heir, &["ship"], Wake::First)).await;

    assert_eq!(ends(&stage, parent).await, ["ship: shipped"]);
    let all = stage.store.count_runs(&stage.namespace, &RunFilter::default()).await.unwrap();
    assert_eq!(all.count, 2, "a parent and a child");
}

/// Applies commands in calls of a size that servers make of many reports.
async fn accepted(stage: &Stage, commands: Vec<Command>) {
    for call in commands.chunks(500) {
        assert!(stage.apply_all(call.to_vec()).await.iter().all(Result::is_ok));
    }
}

async fn cancelled(stage: &Stage) -> u64 {
    let filter = RunFilter { statuses: vec![Status::Cancelled], ..RunFilter::default() };
    stage.store.count_runs(&stage.namespace, &filter).await.unwrap().count
}

pub async fn a_cancelled_parent_of_very_many_closes_them_in_bounded_pieces(stage: Stage) {
    const MANY: usize = 5 * CLOSED_PER_TURN + 1;
    closes_in_pieces(stage, MANY).await;
}

pub async fn a_cancelled_parent_of_ten_thousand_closes_them_in_bounded_pieces(stage: Stage) {
    // As many as a run may have, and the count of a listing stops there.
    closes_in_pieces(stage, kagzi_model::limits::CHILDREN_MAX - 1).await;
}

async fn closes_in_pieces(stage: Stage, many: usize) {
    let mut standing = stage.stand_by(1).await;
    let parent = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let start = |n: usize| act::StartChild { awaited: false, ..child(&stage, &lease, &format!("child#{n}")) };
    accepted(&stage, (0..many).map(|n| lease.report(start(n))).collect()).await;

    stage.ok(stage.cancel(parent)).await;
    // The slot is free, and a child takes it: it is cancelled like any run that somebody executes.
    let executed = standing.next().await.lease();
    let (mut before, mut sweeps) = (cancelled(&stage).await, 0);
    assert_eq!(before, 1, "the commit that ends the parent is as small as any");
    while stage.run(parent).await.close_at.is_some() {
        let expired = SweepKind::Expired { now: stage.now(), leap: None };
        in_time("a sweep", stage.store.sweep(expired)).await.unwrap();
        let after = cancelled(&stage).await;
        assert!(after - before <= CLOSED_PER_TURN as u64, "{before} and then {after}");
        (before, sweeps) = (after, sweeps + 1);
        assert!(sweeps <= many / CLOSED_PER_TURN + 2, "it gets on with it");
    }

    assert_eq!(before, 1 + many as u64, "every one of them");
    assert_eq!(stage.told.lost(executed.run).await.run, executed.run, "its worker is told");
}

pub async fn a_thousand_children_that_end_at_once_wake_their_parent_once(stage: Stage) {
    const MANY: usize = 1_000;
    let mut standing = stage.stand_by(MANY as u32 + 1).await;
    let parent = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let paths: Vec<String> = (0..MANY).map(|n| format!("child#{n}")).collect();
    accepted(&stage, paths.iter().map(|path| lease.report(child(&stage, &lease, path))).collect()).await;
    let mut children = Vec::new();
    for _ in 0..MANY {
        children.push(standing.next().await.lease());
    }
    let named: Vec<&str> = paths.iter().map(String::as_str).collect();
    stage.ok(park(&lease, &named, Wake::Last)).await;

    let (most, last) = children.split_at(MANY - 1);
    accepted(&stage, most.iter().map(|child| complete(child, "done")).collect()).await;
    assert_eq!(stage.waits(parent).await, ("child", None), "one is missing");
    stage.ok(complete(&last[0], "done")).await;

    assert_eq!(standing.next().await.run.id, parent);
    let told: HashSet<String> = ends(&stage, parent).await.into_iter().collect();
    assert_eq!(told.len(), MANY, "each is told of");
    let claims = stage.event_names(parent).await.into_iter().filter(|name| name == "run_claimed").count();
    assert_eq!(claims, 2, "given out when it started, and when all had ended");
}
