//! Retention: runs that ended long ago go with all that belongs to them, others stay, and work goes on
//! meanwhile.

use kagzi_model::{
    Author, Command, Name, NamespaceChange, NamespaceCommand, NamespaceField, OnFailure, RunId, RunKey,
    StartRun, act,
};
use kagzi_store::{ChangeNamespace, LaneStats, RunFilter, SweepKind};

use crate::{Stage, stage::in_time};

const DAY_MS: i64 = 24 * 3600 * 1000;

/// What the server keeps where a namespace does not say: 90 days.
const BY_DEFAULT: SweepKind = SweepKind::Retention { keep_ms: Some(90 * DAY_MS) };

/// Deletes what is past its retention, to the last of it.
async fn sweep(stage: &Stage) {
    stage.sweep(BY_DEFAULT).await;
}

/// A namespace of this check's own.
fn space(stage: &Stage, name: &str) -> Name {
    format!("{}-{name}", stage.namespace).into()
}

async fn change(stage: &Stage, name: &Name, command: NamespaceCommand) {
    let command = ChangeNamespace { name: name.clone(), command, gate: None };
    in_time("an answer", stage.store.ask(command)).await.unwrap().unwrap();
}

fn keep_days(days: i64) -> NamespaceChange {
    NamespaceChange { retention_ms: Some(days * DAY_MS), ..NamespaceChange::default() }
}

/// Starts a run in a namespace; nobody works there.
async fn started_in(stage: &Stage, namespace: &Name, business_id: &str) -> RunId {
    stage.start_with(StartRun { namespace: namespace.clone(), ..stage.new_run(business_id) }).await
}

/// A run of a namespace that ended now.
async fn ended_in(stage: &Stage, namespace: &Name, business_id: &str) -> RunId {
    let run = started_in(stage, namespace, business_id).await;
    stage.ok(RunKey::new(namespace.clone(), run).order(Author::new("tester", "asked to"), act::Cancel)).await;
    run
}

async fn exists_in(stage: &Stage, namespace: &Name, run: RunId) -> bool {
    stage.store.run(namespace, run).await.unwrap().is_some()
}

async fn exists(stage: &Stage, run: RunId) -> bool {
    stage.store.run(&stage.namespace, run).await.unwrap().is_some()
}

/// Starts a run with a label, which a standing worker completes.
async fn completed(stage: &Stage, standing: &mut crate::Standing, business_id: &str) -> RunId {
    let mut start = stage.new_run(business_id);
    start.labels = [("tenant".into(), "acme".into())].into_iter().collect();
    let run = stage.start_with(start).await;
    let lease = standing.next().await.lease();
    stage.ok(stage.record(&lease, "charge", b"paid")).await;
    stage.ok(stage.complete(&lease)).await;
    run
}

pub async fn a_run_goes_with_all_that_belongs_to_it_when_it_ended_long_ago_and_not_before(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = completed(&stage, &mut standing, "order-1").await;
    let ended_at = stage.run(run).await.finished_at.unwrap();
    stage.pass_until_just_before(ended_at.plus_ms(90 * DAY_MS));

    sweep(&stage).await;
    assert!(exists(&stage, run).await);
    stage.pass_one_tick();
    sweep(&stage).await;

    assert!(!exists(&stage, run).await);
    assert!(stage.events(run).await.is_empty());
    let labelled = RunFilter { labels: vec![("tenant".into(), "acme".into())], ..RunFilter::default() };
    for filter in [labelled, RunFilter::default()] {
        assert_eq!(stage.store.count_runs(&stage.namespace, &filter).await.unwrap().count, 0);
    }
    assert_eq!(LaneStats::get(&stage.store.stats().runs_retired), 1);
}

pub async fn a_business_id_is_free_again_when_its_run_is_gone(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let old = completed(&stage, &mut standing, "order-1").await;
    stage.pass_ms(91 * DAY_MS as u64);
    sweep(&stage).await;

    // Another input, which would be a conflict if the old run still had the id.
    let start = StartRun { input: kagzi_model::Payload::new(&b"else"[..]), ..stage.new_run("order-1") };
    let new = stage.start_with(start).await;

    assert_ne!(new, old);
    assert_eq!(stage.store.run_by_business(&stage.namespace, &"order-1".into()).await.unwrap(), Some(new));
}

pub async fn runs_that_have_not_ended_stay_however_old(stage: Stage) {
    let mut standing = stage.stand_by(3).await;
    let mut living = Vec::new();
    for business_id in ["leased", "asleep", "paused"] {
        living.push(stage.start(business_id).await);
        let lease = standing.next().await.lease();
        match business_id {
            "asleep" => drop(stage.ok(stage.sleep(&lease, "nap", 400 * DAY_MS)).await),
            "paused" => drop(stage.ok(lease.report(act::Block { message: "code changed".into() })).await),
            _ => {}
        }
    }
    let mut queued = stage.new_run("queued");
    queued.workflow_type = "nobody".into();
    living.push(stage.start_with(queued).await);
    stage.pass_ms(200 * DAY_MS as u64);

    sweep(&stage).await;

    for run in living {
        assert!(exists(&stage, run).await, "{run}");
    }
}

pub async fn a_reopened_run_stays(stage: Stage) {
    let run = stage.start("order-1").await;
    stage.ok(stage.cancel(run)).await;
    stage.pass_ms(91 * DAY_MS as u64);

    let reopen = RunKey::new(stage.namespace.clone(), run)
        .order(Author::new("tester", ""), act::Retry { from: None, request: None });
    stage.ok(reopen).await;
    sweep(&stage).await;

    assert!(exists(&stage, run).await);
}

pub async fn a_failed_run_stays_until_its_handler_has_ended(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let mut start = stage.new_run("order-1");
    let workflow_type = "clean-up".into();
    start.options.on_failure = Some(OnFailure { workflow_type, task_queue: None });
    let failed = stage.start_with(start).await;
    stage.ok(stage.fail(&standing.next().await.lease())).await;
    stage.pass_ms(91 * DAY_MS as u64);

    sweep(&stage).await;
    assert!(exists(&stage, failed).await);

    let worker = stage.register_for(&["clean-up"], 1).await;
    let mut cleaning = stage.stand_by_as(worker, &["clean-up"]).await;
    stage.ok(stage.complete(&cleaning.next().await.lease())).await;
    sweep(&stage).await;
    assert!(!exists(&stage, failed).await);
}

pub async fn a_run_that_was_retried_and_completed_stays_until_its_handler_has_ended(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let mut start = stage.new_run("order-1");
    start.options.on_failure = Some(OnFailure { workflow_type: "clean-up".into(), task_queue: None });
    let run = stage.start_with(start).await;
    stage.ok(stage.fail(&standing.next().await.lease())).await;
    let (namespace, from, request) = (stage.namespace.clone(), None, None);
    stage
        .ok(RunKey::new(namespace, run).order(Author::new("tester", ""), act::Retry { from, request }))
        .await;
    stage.ok(stage.complete(&standing.next().await.lease())).await;
    stage.pass_ms(91 * DAY_MS as u64);

    sweep(&stage).await;
    assert!(exists(&stage, run).await, "its handler still waits for a worker, and is told of it");

    let worker = stage.register_for(&["clean-up"], 1).await;
    let mut cleaning = stage.stand_by_as(worker, &["clean-up"]).await;
    stage.ok(stage.complete(&cleaning.next().await.lease())).await;
    sweep(&stage).await;
    assert!(!exists(&stage, run).await);
}

pub async fn a_namespace_keeps_its_runs_for_as_long_as_it_says_and_others_for_as_long_as_the_server_says(
    stage: Stage,
) {
    let (short, silent, long) = (space(&stage, "a"), space(&stage, "b"), space(&stage, "c"));
    change(&stage, &short, NamespaceCommand::Create(keep_days(1))).await;
    change(&stage, &long, NamespaceCommand::Create(keep_days(200))).await;
    let mut ended = Vec::new();
    for namespace in [&short, &silent, &long] {
        ended.push((namespace, ended_in(&stage, namespace, "order-1").await));
    }
    let living = started_in(&stage, &short, "order-2").await;
    let left = async || {
        let mut left = Vec::new();
        for (namespace, run) in &ended {
            left.push(exists_in(&stage, namespace, *run).await);
        }
        left
    };

    stage.pass_until_just_before(stage.now().plus_ms(DAY_MS));
    sweep(&stage).await;
    assert_eq!(left().await, [true, true, true]);
    stage.pass_one_tick();
    sweep(&stage).await;
    assert_eq!(left().await, [false, true, true]);
    stage.pass_ms(90 * DAY_MS as u64);
    sweep(&stage).await;
    assert_eq!(left().await, [false, false, true]);
    stage.pass_ms(110 * DAY_MS as u64);
    sweep(&stage).await;

    assert_eq!(left().await, [false, false, false]);
    assert!(exists_in(&stage, &short, living).await, "a run that has not ended stays");
    assert_eq!(LaneStats::get(&stage.store.stats().runs_retired), 3);
}

pub async fn a_server_that_keeps_everything_still_follows_the_namespaces(stage: Stage) {
    let (short, silent) = (space(&stage, "a"), space(&stage, "b"));
    change(&stage, &short, NamespaceCommand::Create(keep_days(1))).await;
    let forgotten = ended_in(&stage, &short, "order-1").await;
    let kept = ended_in(&stage, &silent, "order-1").await;
    stage.pass_ms(9_000 * DAY_MS as u64);

    stage.sweep(SweepKind::Retention { keep_ms: None }).await;

    assert!(!exists_in(&stage, &short, forgotten).await);
    assert!(exists_in(&stage, &silent, kept).await);
}

pub async fn a_changed_retention_holds_from_its_commit_on(stage: Stage) {
    let shop = space(&stage, "shop");
    change(&stage, &shop, NamespaceCommand::Create(keep_days(1))).await;
    let run = ended_in(&stage, &shop, "order-1").await;
    stage.pass_ms(2 * DAY_MS as u64);

    change(&stage, &shop, NamespaceCommand::Update(keep_days(30))).await;
    sweep(&stage).await;
    assert!(exists_in(&stage, &shop, run).await, "30 days were asked for in time");
    stage.pass_ms(29 * DAY_MS as u64);
    let clear = NamespaceChange { clear: vec![NamespaceField::Retention], ..NamespaceChange::default() };
    change(&stage, &shop, NamespaceCommand::Update(clear)).await;
    sweep(&stage).await;
    assert!(exists_in(&stage, &shop, run).await, "left to the server again, which keeps for 90 days");
    stage.pass_ms(60 * DAY_MS as u64);
    sweep(&stage).await;

    assert!(!exists_in(&stage, &shop, run).await);
}

pub async fn what_one_namespace_must_keep_does_not_stop_the_retention_of_the_next(stage: Stage) {
    let (stuck, next) = (space(&stage, "a"), space(&stage, "b"));
    // As many as a turn deletes, all timed out, with handlers that nobody executes.
    let starts = (0..100).map(|number| {
        let mut start = StartRun { namespace: stuck.clone(), ..stage.new_run(&format!("stuck-{number}")) };
        start.deadline_at = Some(stage.now().plus_ms(1));
        start.options.on_failure = Some(OnFailure { workflow_type: "clean-up".into(), task_queue: None });
        start
    });
    let starts: Vec<_> = starts.collect();
    let kept: Vec<RunId> = starts.iter().map(|start| start.id).collect();
    let commands = starts.into_iter().map(Command::start);
    stage.apply_all(commands.collect()).await.into_iter().for_each(|outcome| drop(outcome.unwrap()));
    stage.pass_ms(1);
    stage.sweep_expired().await;
    let old = ended_in(&stage, &next, "order-1").await;
    stage.pass_ms(91 * DAY_MS as u64);

    sweep(&stage).await;

    assert!(!exists_in(&stage, &next, old).await);
    for run in kept {
        assert!(exists_in(&stage, &stuck, run).await, "{run}");
    }
}

pub async fn many_runs_go_in_small_turns_and_claims_go_on_between_them(stage: Stage) {
    let starts: Vec<_> = (0..350).map(|number| stage.new_run(&format!("old-{number}"))).collect();
    let old: Vec<RunId> = starts.iter().map(|start| start.id).collect();
    let commands = starts.into_iter().map(Command::start);
    stage.apply_all(commands.collect()).await.into_iter().for_each(|outcome| drop(outcome.unwrap()));
    stage.apply_all(old.iter().map(|run| stage.cancel(*run)).collect()).await;
    stage.pass_ms(91 * DAY_MS as u64);
    let mut standing = stage.stand_by(1).await;

    let mut turns = 0;
    loop {
        let swept = in_time("a sweep", stage.store.sweep(BY_DEFAULT)).await.unwrap();
        turns += 1;
        assert!(swept.count <= 100, "{} runs in one turn", swept.count);
        // Between two turns a run is started, claimed and completed as ever.
        let run = completed(&stage, &mut standing, &format!("new-{turns}")).await;
        assert!(exists(&stage, run).await);
        if !swept.more {
            break;
        }
    }

    assert!(turns >= 4, "{turns}");
    let left = stage.store.count_runs(&stage.namespace, &RunFilter::default()).await.unwrap();
    assert_eq!(left.count, turns);
    let stats = stage.store.stats();
    assert_eq!(LaneStats::get(&stats.runs_retired), 350);
    assert!(LaneStats::get(&stats.retention_batches) >= 4, "{stats:?}");
    assert!(LaneStats::get(&stats.events_retired) >= 700, "at least two events of each: {stats:?}");
}
