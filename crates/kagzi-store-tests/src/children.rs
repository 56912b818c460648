//! Parents and children: both are there or neither, the end of one is told to the other, and what a run has
//! started ends with it as it asked for.

use kagzi_model::{
    ChildBegan, ClosePolicy, Command, EventKind, JournalState, LeaseRef, Name, Parent, Payload, Rejection,
    Reply, RunId, StartRun, State, Status, Waited, Wake, act, child_channel, codes, journal,
    limits::{CLOSED_PER_TURN, LINEAGE_MAX},
};
use uuid::Uuid;

use crate::{Stage, stage::step};

/// A child that the step waits for.
pub(crate) fn child(stage: &Stage, lease: &LeaseRef, path: &str) -> act::StartChild {
    let start = StartRun {
        id: RunId(Uuid::now_v7()),
        business_id: None,
        // What a worker says here counts for nothing: a child is where its parent is.
        namespace: "elsewhere".into(),
        task_queue: Name::empty(),
        ..stage.new_run("child")
    };
    debug_assert!(lease.epoch > 0);
    act::StartChild {
        step: step(path),
        start: Box::new(start),
        close: ClosePolicy::Cancel,
        awaited: true,
        told: true,
        timeout_ms: None,
        park: false,
    }
}

pub(crate) async fn began(stage: &Stage, lease: &LeaseRef, start: act::StartChild) -> RunId {
    match stage.ok(lease.report(start)).await {
        Reply::ChildBegan(ChildBegan { child, .. }) => child,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn park(lease: &LeaseRef, waits: &[&str], wake: Wake) -> Command {
    lease.report(act::Park { waits: waits.iter().map(|path| Name::from(*path)).collect(), wake })
}

/// How the steps of a run ended, in the order in which its function is told.
pub(crate) async fn ends(stage: &Stage, run: RunId) -> Vec<String> {
    let mut entries = journal(&stage.events(run).await);
    entries.retain(|entry| entry.order > 0);
    entries.sort_by_key(|entry| entry.order);
    let said = |state: &JournalState| match state {
        JournalState::Completed { result } => String::from_utf8_lossy(&result.data).into_owned(),
        JournalState::Failed { failure, .. } => failure.code.to_string(),
        other => format!("{other:?}"),
    };
    entries.iter().map(|entry| format!("{}: {}", entry.path, said(&entry.state))).collect()
}

pub(crate) fn complete(lease: &LeaseRef, output: &str) -> Command {
    lease.report(act::Complete { steps: vec![], output: Payload::new(output.as_bytes().to_vec()) })
}

/// Closes what is left to close, and what that leaves.
async fn close_all(stage: &Stage) {
    for _ in 0..20 {
        stage.sweep_expired().await;
    }
}

pub async fn a_child_is_there_with_the_record_of_its_start_and_sent_twice_it_is_one(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let parent = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let start = child(&stage, &lease, "ship");

    let answer = stage.ok(lease.report(start.clone())).await;
    let again = act::StartChild { start: child(&stage, &lease, "ship").start, ..start };

    let Reply::ChildBegan(ChildBegan { child, waited }) = answer.clone() else { panic!("{answer:?}") };
    assert_eq!(waited, Some(Waited::Until(None)));
    assert_eq!(stage.ok(lease.report(again)).await, answer, "sent twice, started once");
    let run = stage.run(child).await;
    assert_eq!(
        (run.namespace, run.task_queue),
        (stage.namespace.clone(), stage.run(parent).await.task_queue)
    );
    let above = run.options.parent.clone().expect("it knows its parent");
    let expected =
        Parent { run: parent, step: "ship".into(), close: ClosePolicy::Cancel, depth: 1, told: true };
    assert_eq!(above, expected);
    let started = stage.event_names(parent).await.into_iter().filter(|name| name == "child_started");
    assert_eq!(started.count(), 1);
}

pub async fn the_end_of_a_child_wakes_its_parent_in_its_own_commit(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let parent = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let child = began(&stage, &lease, child(&stage, &lease, "ship")).await;
    stage.ok(park(&lease, &["ship"], Wake::First)).await;
    assert_eq!(stage.waits(parent).await, ("child", None));
    let of_child = standing.next().await;
    assert_eq!(of_child.run.id, child, "a parent that waits holds no slot");

    stage.ok(complete(&of_child.lease(), "shipped")).await;

    assert!(matches!(stage.run(parent).await.state, State::Leased(_)), "one commit");
    assert_eq!(standing.next().await.run.epoch, 2);
    assert_eq!(ends(&stage, parent).await, ["ship: shipped"]);
}

pub async fn a_child_that_ends_first_is_taken_by_whoever_asks_or_parks(stage: Stage) {
    for parks in [false, true] {
        let mut standing = stage.stand_by(2).await;
        let parent = stage.start(if parks { "order-1" } else { "order-2" }).await;
        let lease = standing.next().await.lease();
        let child = began(&stage, &lease, child(&stage, &lease, "ship")).await;
        stage.ok(complete(&standing.next().await.lease(), "shipped")).await;
        assert_eq!(ends(&stage, parent).await, [] as [String; 0], "the worker says when it is told");

        if parks {
            stage.ok(park(&lease, &["ship"], Wake::First)).await;
            assert_eq!(standing.next().await.run.id, parent);
        } else {
            let (channel, timeout_ms) = (child_channel(child), None);
            let ask =
                act::AwaitSignal { step: step("ship"), channel, timeout_ms, last_call: false, park: false };
            let told = stage.ok(lease.report(ask)).await;
            assert!(matches!(told, Reply::Waited(Waited::Taken { failure: None, .. })), "{told:?}");
        }

        assert_eq!(ends(&stage, parent).await, ["ship: shipped"]);
    }
}

pub async fn the_last_of_many_children_wakes_their_parent(stage: Stage) {
    let mut standing = stage.stand_by(8).await;
    let parent = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let paths = ["a", "b", "c", "d"];
    for path in paths {
        began(&stage, &lease, child(&stage, &lease, path)).await;
    }
    let mut children = Vec::new();
    for _ in paths {
        children.push(standing.next().await.lease());
    }
    stage.ok(complete(&children[0], "early")).await;

    stage.ok(park(&lease, &paths, Wake::Last)).await;
    for (child, output) in children[1..].iter().zip(["second", "third"]) {
        stage.ok(complete(child, output)).await;
        assert_eq!(stage.waits(parent).await, ("child", None), "after the {output}");
    }
    stage.ok(stage.fail(&children[3])).await;

    assert_eq!(standing.next().await.run.id, parent);
    assert_eq!(ends(&stage, parent).await, ["a: early", "b: second", "c: third", "d: GAVE_UP"]);
    let claims = stage.event_names(parent).await.into_iter().filter(|name| name == "run_claimed").count();
    assert_eq!(claims, 2, "woken once");
}

pub async fn the_first_failure_wakes_a_parent_that_wants_to_hear_of_it(stage: Stage) {
    let mut standing = stage.stand_by(8).await;
    let parent = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    for path in ["a", "b", "c"] {
        began(&stage, &lease, child(&stage, &lease, path)).await;
    }
    let (first, second) = (standing.next().await.lease(), standing.next().await.lease());
    stage.ok(park(&lease, &["a", "b", "c"], Wake::LastOrFailed)).await;

    stage.ok(complete(&first, "good")).await;
    assert_eq!(stage.waits(parent).await.0, "child");
    stage.ok(stage.fail(&second)).await;

    assert!(matches!(stage.run(parent).await.state, State::Leased(_)));
    assert_eq!(ends(&stage, parent).await, ["a: good", "b: GAVE_UP"]);
}

pub async fn every_way_in_which_a_child_ends_is_told_with_its_code(stage: Stage) {
    let mut standing = stage.stand_by(8).await;
    let parent = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let mut children = Vec::new();
    for path in ["cancelled", "late", "terminated"] {
        let mut start = child(&stage, &lease, path);
        start.start.deadline_at = (path == "late").then(|| stage.now().plus_ms(5_000));
        children.push(began(&stage, &lease, start).await);
    }
    stage.ok(park(&lease, &["cancelled", "late", "terminated"], Wake::Last)).await;

    stage.ok(stage.cancel(children[0])).await;
    stage.pass_ms(6_000);
    stage.sweep_expired().await;
    let by = kagzi_model::Author::new("tester", "enough");
    let terminate = kagzi_model::RunKey::new(stage.namespace.clone(), children[2]).order(by, act::Terminate);
    stage.ok(terminate).await;

    let expected =
        [("cancelled", codes::CANCELLED), ("late", codes::TIMED_OUT), ("terminated", codes::TERMINATED)];
    assert_eq!(ends(&stage, parent).await, expected.map(|(path, code)| format!("{path}: {code}")));
}

pub async fn what_a_run_has_started_ends_with_it_as_it_asked_for(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let parent = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let mut children = Vec::new();
    for (path, close) in
        [("a", ClosePolicy::Cancel), ("b", ClosePolicy::Terminate), ("c", ClosePolicy::Abandon)]
    {
        let start = child(&stage, &lease, path);
        children.push(began(&stage, &lease, act::StartChild { close, awaited: false, ..start }).await);
    }

    stage.ok(stage.complete(&lease)).await;
    close_all(&stage).await;

    let mut statuses = Vec::new();
    for child in &children {
        statuses.push(stage.run(*child).await.state.status());
    }
    assert_eq!(statuses[..2], [Status::Cancelled, Status::Failed]);
    assert!(!stage.run(children[2]).await.state.finished(), "it was to go on");
    assert_eq!(stage.run(parent).await.close_at, None, "nothing is left to close");
    let closed = stage.event_names(parent).await.into_iter().filter(|name| name == "children_closed").count();
    assert_eq!(closed, 1);
}

pub async fn many_children_are_closed_in_pieces_and_trees_to_their_leaves(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let parent = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let mut children = Vec::new();
    for n in 0..=CLOSED_PER_TURN {
        let start = act::StartChild { awaited: false, ..child(&stage, &lease, &format!("child#{n}")) };
        children.push(began(&stage, &lease, start).await);
    }
    stage.ok(lease.report(act::Sleep { step: step("nap"), duration_ms: 3_600_000, park: true })).await;
    // The first child is given out, and has a child of its own.
    let middle = standing.next().await;
    assert!(children.contains(&middle.run.id), "the parent sleeps");
    let leaf = began(&stage, &middle.lease(), child(&stage, &middle.lease(), "leaf")).await;

    stage.ok(stage.cancel(parent)).await;
    close_all(&stage).await;

    for child in children.iter().chain([&leaf]) {
        assert_eq!(stage.run(*child).await.state.status(), Status::Cancelled, "{child}");
    }
    let pieces = stage.event_names(parent).await.into_iter().filter(|name| name == "children_closed").count();
    assert_eq!(pieces, 2);
}

pub async fn a_child_whose_id_another_run_has_is_not_started_and_its_parent_is_told(stage: Stage) {
    let mut standing = stage.stand_by(2).await;
    let parent = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let other = stage.start("taken").await;
    let mut start = child(&stage, &lease, "ship");
    start.start.business_id = Some("taken".into());

    let began = began(&stage, &lease, start).await;
    stage.ok(park(&lease, &["ship"], Wake::First)).await;

    assert_eq!(ends(&stage, parent).await, [format!("ship: {}", codes::CHILD_NOT_STARTED)]);
    assert!(stage.store.run(&stage.namespace, began).await.unwrap().is_none(), "nothing was started");
    let failure = journal(&stage.events(parent).await).remove(0);
    assert!(format!("{failure:?}").contains(&other.to_string()), "it says whose id it is");
}

pub async fn a_run_that_goes_on_again_starts_other_children_for_those_that_were_closed(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let parent = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let first = began(&stage, &lease, child(&stage, &lease, "ship")).await;
    stage.ok(stage.fail(&lease)).await;
    assert_eq!(standing.next().await.run.id, first);
    close_all(&stage).await;
    assert_eq!(stage.run(first).await.state.status(), Status::Cancelled);

    let by = kagzi_model::Author::new("tester", "");
    let retry = act::Retry { from: None, request: None };
    stage.ok(kagzi_model::RunKey::new(stage.namespace.clone(), parent).order(by, retry)).await;
    let lease = standing.next().await.lease();
    let second = began(&stage, &lease, child(&stage, &lease, "ship")).await;

    assert_ne!(first, second);
    stage.ok(park(&lease, &["ship"], Wake::First)).await;
    stage.ok(complete(&standing.next().await.lease(), "shipped")).await;
    assert_eq!(ends(&stage, parent).await, ["ship: shipped"]);
}

pub async fn the_end_of_a_child_is_recorded_also_where_its_parent_has_ended(stage: Stage) {
    let mut standing = stage.stand_by(2).await;
    let parent = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let start = child(&stage, &lease, "ship");
    let child = began(&stage, &lease, act::StartChild { close: ClosePolicy::Abandon, ..start }).await;
    let of_child = standing.next().await.lease();
    stage.ok(stage.fail(&lease)).await;

    stage.ok(complete(&of_child, "shipped")).await;

    assert_eq!(stage.run(child).await.state.status(), Status::Completed);
    let last = stage.events(parent).await.pop().expect("it has a history");
    assert!(matches!(last.kind, EventKind::SignalReceived { .. }), "a person may let it go on: {last:?}");
}

pub async fn a_lineage_has_an_end(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let mut deep = stage.new_run("deep");
    let (run, step, close) = (RunId(Uuid::now_v7()), "up".into(), ClosePolicy::Abandon);
    deep.options.parent = Some(Parent { run, step, close, depth: LINEAGE_MAX, told: false });
    stage.start_with(deep).await;
    let lease = standing.next().await.lease();

    let refused = stage.apply(lease.report(child(&stage, &lease, "ship"))).await;

    assert!(matches!(refused, Err(Rejection::LineageTooDeep { .. })), "{refused:?}");
    stage.ok(stage.complete(&lease)).await;
}
