//! Schedules: one run per nominal time, on time, by the policy, over restarts.

use kagzi_model::{
    Author, Labels, Payload, RunId, RunKey, RunOptions, StartRun, State, Status, Timestamp, act,
    limits::SCHEDULE_SLICE,
    rfc3339,
    schedule::{
        Backfill, NewSchedule, Overlap, Plan, Schedule, ScheduleCommand, ScheduleKey, ScheduleRejection,
        ScheduleRequest, Timing,
    },
};
use kagzi_store::{
    Direction, LaneStats, PageRequest, RunFilter, ScheduleFilter, ScheduleReply, SweepKind, Swept,
};
use uuid::Uuid;

use crate::{
    Stage,
    stage::{TYPE, in_time},
};

pub(crate) const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

pub(crate) fn minutely(overlap: Overlap) -> Plan {
    Plan {
        timing: Timing::Interval { every_ms: MINUTE_MS, phase_ms: 0 },
        workflow_type: TYPE.into(),
        task_queue: "default".into(),
        options: RunOptions::default(),
        labels: Labels::default(),
        overlap,
        jitter_ms: 0,
        max_catchup: 100,
    }
}

pub(crate) fn create(plan: Plan) -> ScheduleCommand {
    let input = Payload::new(&b"the schedule's input"[..]);
    ScheduleCommand::Create(Box::new(NewSchedule { uid: Uuid::now_v7(), plan, input, paused: None }))
}

pub(crate) async fn ask(
    stage: &Stage,
    id: &str,
    command: ScheduleCommand,
) -> Result<ScheduleReply, ScheduleRejection> {
    let key = ScheduleKey { namespace: stage.namespace.clone(), id: id.into() };
    let request = ScheduleRequest { key, command };
    in_time("an answer", stage.store.schedule(request)).await.expect("the store works")
}

pub(crate) async fn ok(stage: &Stage, id: &str, command: ScheduleCommand) -> ScheduleReply {
    ask(stage, id, command).await.unwrap_or_else(|refused| panic!("{refused}"))
}

async fn sweep_once(stage: &Stage) -> Swept {
    let kind = SweepKind::Schedules { schedules_max: 100, runs_max: 1_000 };
    in_time("a sweep", stage.store.sweep(kind)).await.expect("the store works")
}

/// Sweeps until nothing is due.
pub(crate) async fn sweep(stage: &Stage) {
    while sweep_once(stage).await.more {}
}

pub(crate) async fn row(stage: &Stage, id: &str) -> Schedule {
    let found = stage.store.schedule_by_id(&stage.namespace, &id.into()).await.expect("reading works");
    found.expect("the schedule exists")
}

/// The runs of a schedule, oldest nominal time first.
pub(crate) async fn runs(stage: &Stage, id: &str) -> Vec<(Timestamp, RunId)> {
    let filter = RunFilter { schedule: Some(id.into()), ..RunFilter::default() };
    let page = PageRequest { from: None, direction: Direction::Next, limit: 1_000 };
    let found = stage.store.runs(&stage.namespace, &filter, &page).await.expect("reading works");
    let mut runs: Vec<_> = found
        .rows
        .into_iter()
        .map(|run| (run.options.scheduled.as_ref().expect("filtered by it").at, run.id))
        .collect();
    runs.sort_unstable();
    runs
}

pub(crate) async fn nominal_times(stage: &Stage, id: &str) -> Vec<Timestamp> {
    runs(stage, id).await.into_iter().map(|(at, _)| at).collect()
}

pub(crate) fn minutes_after(from: Timestamp, minutes: std::ops::RangeInclusive<i64>) -> Vec<Timestamp> {
    minutes.map(|minute| from.plus_ms(minute * MINUTE_MS)).collect()
}

/// The stage's clock stands 20 s after a full minute; this is that minute.
pub(crate) fn last_minute(stage: &Stage) -> Timestamp {
    Timestamp(stage.now().0 / (MINUTE_MS * 1000) * MINUTE_MS * 1000)
}

pub async fn a_schedule_fires_exactly_on_time_and_once(stage: Stage) {
    let begin = last_minute(&stage);
    let made = ok(&stage, "tick", create(minutely(Overlap::Allow))).await;
    let due = begin.plus_ms(MINUTE_MS);
    assert_eq!(made.schedule.state.next_at, Some(due));

    stage.pass_until_just_before(due);
    sweep(&stage).await;
    assert!(runs(&stage, "tick").await.is_empty(), "never early");
    stage.pass_one_tick();
    sweep(&stage).await;
    sweep(&stage).await;

    let found = runs(&stage, "tick").await;
    assert_eq!(found.len(), 1);
    let run = stage.run(found[0].1).await;
    assert_eq!(run.business_id, Some(format!("schedule:tick:{}", rfc3339(due)).into()));
    let view = stage.store.run(&stage.namespace, run.id).await.unwrap().unwrap();
    assert_eq!(view.input.unwrap().data, &b"the schedule's input"[..]);
    let state = row(&stage, "tick").await.state;
    assert_eq!((state.started_total, state.next_at), (1, Some(due.plus_ms(MINUTE_MS))));
    assert_eq!(state.last.unwrap().run, run.id);
}

pub async fn a_standing_worker_gets_a_scheduled_run_in_the_same_commit(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    ok(&stage, "tick", create(minutely(Overlap::Allow))).await;
    stage.pass_ms(MINUTE_MS as u64);

    sweep(&stage).await;

    let run = standing.next().await.run;
    assert_eq!(run.options.scheduled.as_ref().unwrap().at, last_minute(&stage));
    assert!(matches!(run.state, State::Leased(_)));
}

pub async fn after_thirty_days_the_newest_hundred_run_and_others_are_not_starved(stage: Stage) {
    ok(&stage, "behind", create(minutely(Overlap::Allow))).await;
    stage.pass_ms(30 * DAY_MS as u64 - MINUTE_MS as u64);
    let daily =
        Plan { timing: Timing::Interval { every_ms: MINUTE_MS, phase_ms: 0 }, ..minutely(Overlap::Skip) };
    ok(&stage, "other", create(daily)).await;
    stage.pass_ms(MINUTE_MS as u64);

    sweep_once(&stage).await;
    assert_eq!(runs(&stage, "behind").await.len(), SCHEDULE_SLICE, "a slice at a time");
    assert_eq!(runs(&stage, "other").await.len(), 1, "the other one is served in the same turn");
    sweep(&stage).await;

    let last = last_minute(&stage);
    assert_eq!(nominal_times(&stage, "behind").await, minutes_after(last, -99..=0));
    let found = runs(&stage, "behind").await;
    assert!(found.is_sorted_by_key(|(_, run)| *run), "they are given out in the order of their times");
    let state = row(&stage, "behind").await.state;
    assert_eq!((state.started_total, state.missed_total), (100, 30 * 24 * 60 - 100));
}

pub async fn the_bounds_of_a_round_are_kept(stage: Stage) {
    for number in 0..5 {
        ok(&stage, &format!("tick-{number}"), create(minutely(Overlap::Allow))).await;
    }
    stage.pass_ms(3 * MINUTE_MS as u64);

    let few_schedules = SweepKind::Schedules { schedules_max: 2, runs_max: 1_000 };
    let swept = in_time("a sweep", stage.store.sweep(few_schedules)).await.unwrap();
    assert_eq!((swept.count, swept.more), (6, true), "three runs of each of two");
    let few_runs = SweepKind::Schedules { schedules_max: 100, runs_max: 4 };
    let swept = in_time("a sweep", stage.store.sweep(few_runs)).await.unwrap();
    assert_eq!((swept.count, swept.more), (4, true), "three runs of one and one of another");

    sweep(&stage).await;
    for number in 0..5 {
        assert_eq!(runs(&stage, &format!("tick-{number}")).await.len(), 3);
    }
}

pub async fn skip_leaves_out_what_comes_while_a_run_goes(stage: Stage) {
    let begin = last_minute(&stage);
    let mut standing = stage.stand_by(5).await;
    ok(&stage, "tick", create(minutely(Overlap::Skip))).await;
    stage.pass_ms(MINUTE_MS as u64);
    sweep(&stage).await;
    let lease = standing.next().await.lease();
    stage.pass_ms(MINUTE_MS as u64);
    sweep(&stage).await;
    assert_eq!(runs(&stage, "tick").await.len(), 1);

    stage.ok(stage.complete(&lease)).await;
    stage.pass_ms(MINUTE_MS as u64);
    sweep(&stage).await;

    assert_eq!(nominal_times(&stage, "tick").await, [begin.plus_ms(MINUTE_MS), begin.plus_ms(3 * MINUTE_MS)]);
    assert_eq!(row(&stage, "tick").await.state.overlapped_total, 1);
}

pub async fn a_buffered_time_starts_in_the_commit_that_ends_the_run_before(stage: Stage) {
    let begin = last_minute(&stage);
    let mut standing = stage.stand_by(5).await;
    ok(&stage, "tick", create(minutely(Overlap::BufferAll))).await;
    stage.pass_ms(3 * MINUTE_MS as u64);
    sweep(&stage).await;
    let first = standing.next().await;
    assert!(standing.ready().is_none(), "one at a time");
    assert_eq!(row(&stage, "tick").await.state.buffer.len(), 2);

    let lease = first.lease();
    let commits = stage.store.stats();
    let before = LaneStats::get(&commits.commits);
    stage.ok(stage.complete(&lease)).await;
    let second = standing.next().await;
    assert_eq!(LaneStats::get(&commits.commits) - before, 1, "end, start and claim share a commit");
    let lease = second.lease();
    stage.ok(stage.cancel(second.run.id)).await;
    let third = standing.next().await;

    assert_eq!(lease.run, second.run.id);
    let at = |run: &kagzi_model::Run| run.options.scheduled.as_ref().unwrap().at;
    let order = [at(&first.run), at(&second.run), at(&third.run)];
    assert_eq!(order.to_vec(), minutes_after(begin, 1..=3));
}

pub async fn buffer_one_keeps_one_and_counts_the_others(stage: Stage) {
    let begin = last_minute(&stage);
    let mut standing = stage.stand_by(5).await;
    ok(&stage, "tick", create(minutely(Overlap::BufferOne))).await;
    stage.pass_ms(4 * MINUTE_MS as u64);
    sweep(&stage).await;
    let lease = standing.next().await.lease();
    assert_eq!(row(&stage, "tick").await.state.overlapped_total, 2);

    stage.ok(stage.complete(&lease)).await;

    let second = standing.next().await.run.options.scheduled.as_ref().unwrap().at;
    assert_eq!(second, begin.plus_ms(2 * MINUTE_MS));
    assert!(row(&stage, "tick").await.state.buffer.is_empty());
}

pub async fn cancel_and_terminate_take_the_place_of_the_run_before(stage: Stage) {
    for (overlap, id, expected) in [
        (Overlap::CancelPrevious, "cancels", Status::Cancelled),
        (Overlap::TerminatePrevious, "terminates", Status::Failed),
    ] {
        ok(&stage, id, create(minutely(overlap))).await;
        stage.pass_ms(MINUTE_MS as u64);
        sweep(&stage).await;
        stage.pass_ms(MINUTE_MS as u64);
        sweep(&stage).await;

        let found = runs(&stage, id).await;
        assert_eq!(found.len(), 2);
        assert_eq!(stage.run(found[0].1).await.state.status(), expected);
        assert_eq!(stage.run(found[1].1).await.state.status(), Status::Pending);
        ok(&stage, id, ScheduleCommand::Delete).await;
    }
}

pub async fn a_pause_holds_and_a_resume_chooses_whether_to_catch_up(stage: Stage) {
    for (id, catch_up, expected) in [("skips", false, 0), ("catches-up", true, 5)] {
        ok(&stage, id, create(minutely(Overlap::Allow))).await;
        let paused = ok(&stage, id, ScheduleCommand::Pause { note: "migration".into() }).await;
        assert_eq!(paused.schedule.state.paused.unwrap().note, "migration");
        stage.pass_ms(5 * MINUTE_MS as u64);
        sweep(&stage).await;
        assert!(runs(&stage, id).await.is_empty());

        ok(&stage, id, ScheduleCommand::Resume { catch_up }).await;
        sweep(&stage).await;

        assert_eq!(runs(&stage, id).await.len(), expected, "{id}");
        assert_eq!(row(&stage, id).await.state.missed_total, 5 - expected as u64);
        ok(&stage, id, ScheduleCommand::Delete).await;
    }
}

pub async fn a_trigger_is_safe_to_send_twice(stage: Stage) {
    let plan = Plan { overlap: Overlap::Skip, ..minutely(Overlap::Skip) };
    ok(&stage, "tick", create(plan)).await;
    let trigger = |name: &str| ScheduleCommand::Trigger { run: RunId(Uuid::now_v7()), trigger: name.into() };

    let first = ok(&stage, "tick", trigger("t-1")).await;
    let again = ok(&stage, "tick", trigger("t-1")).await;
    let other = ok(&stage, "tick", trigger("t-2")).await;

    let (run, existed) = first.run.unwrap();
    assert!(!existed);
    assert_eq!(again.run, Some((run, true)));
    assert_ne!(other.run.unwrap().0, run);
    assert_eq!(row(&stage, "tick").await.state.started_total, 2);
    assert_eq!(stage.run(run).await.options.scheduled.as_ref().unwrap().at, stage.now());
}

pub async fn a_backfill_starts_each_time_of_its_range_once(stage: Stage) {
    ok(&stage, "tick", create(minutely(Overlap::Skip))).await;
    let to = last_minute(&stage);
    let range = |minutes: i64| Backfill { after: to.plus_ms(-minutes * MINUTE_MS), to, at_once: true };

    ok(&stage, "tick", ScheduleCommand::Backfill(range(25))).await;
    sweep(&stage).await;
    assert_eq!(nominal_times(&stage, "tick").await, minutes_after(to, -24..=0));
    ok(&stage, "tick", ScheduleCommand::Backfill(range(30))).await;
    sweep(&stage).await;

    assert_eq!(nominal_times(&stage, "tick").await, minutes_after(to, -29..=0), "only what was missing");
    assert_eq!(row(&stage, "tick").await.state.started_total, 30);
}

pub async fn a_backfill_can_run_one_after_the_other(stage: Stage) {
    let mut standing = stage.stand_by(5).await;
    ok(&stage, "tick", create(minutely(Overlap::Allow))).await;
    let to = last_minute(&stage);
    let range = Backfill { after: to.plus_ms(-3 * MINUTE_MS), to, at_once: false };
    ok(&stage, "tick", ScheduleCommand::Backfill(range)).await;
    sweep(&stage).await;

    let mut order = Vec::new();
    for _ in 0..3 {
        let assignment = standing.next().await;
        assert!(standing.ready().is_none(), "one at a time");
        order.push(assignment.run.options.scheduled.as_ref().unwrap().at);
        stage.ok(stage.complete(&assignment.lease())).await;
    }

    assert_eq!(order, minutes_after(to, -2..=0));
    sweep(&stage).await;
    assert!(row(&stage, "tick").await.state.backfills.is_empty());
}

pub async fn creating_twice_is_creating_once_and_another_plan_is_refused(stage: Stage) {
    let first = ok(&stage, "tick", create(minutely(Overlap::Allow))).await;
    let again = ok(&stage, "tick", create(minutely(Overlap::Allow))).await;
    let refused = ask(&stage, "tick", create(minutely(Overlap::Skip))).await.unwrap_err();

    assert!(first.changed && !again.changed);
    assert_eq!(again.schedule.uid, first.schedule.uid);
    assert!(matches!(refused, ScheduleRejection::Exists { what: "plan", .. }), "{refused}");
}

pub async fn an_update_holds_from_now_on_and_notices_a_stale_reader(stage: Stage) {
    let made = ok(&stage, "tick", create(minutely(Overlap::Allow))).await.schedule;
    let hourly = Plan {
        timing: Timing::Interval { every_ms: 60 * MINUTE_MS, phase_ms: 0 },
        ..minutely(Overlap::Skip)
    };
    let new = |plan: Plan| {
        Box::new(NewSchedule { uid: Uuid::now_v7(), plan, input: Payload::new(&b"new"[..]), paused: None })
    };
    let update = |if_version| ScheduleCommand::Update { new: new(hourly.clone()), if_version };

    let updated = ok(&stage, "tick", update(Some(made.state.revision))).await.schedule;
    let refused = ask(&stage, "tick", update(Some(made.state.revision))).await.unwrap_err();

    assert!(matches!(refused, ScheduleRejection::Stale { .. }), "{refused}");
    let found = row(&stage, "tick").await;
    assert_eq!(found, updated);
    assert_eq!((found.plan, &*found.input.data), (hourly, &b"new"[..]));
    assert_eq!(found.created_at, made.created_at);
    stage.pass_ms(5 * MINUTE_MS as u64);
    sweep(&stage).await;
    assert!(runs(&stage, "tick").await.is_empty());
}

pub async fn a_deleted_schedule_fires_no_more_and_its_runs_go_on(stage: Stage) {
    ok(&stage, "tick", create(minutely(Overlap::BufferAll))).await;
    stage.pass_ms(MINUTE_MS as u64);
    sweep(&stage).await;
    let run = runs(&stage, "tick").await[0].1;

    ok(&stage, "tick", ScheduleCommand::Delete).await;
    stage.pass_ms(MINUTE_MS as u64);
    sweep(&stage).await;

    assert_eq!(stage.run(run).await.state.status(), Status::Pending);
    assert_eq!(stage.store.schedule_by_id(&stage.namespace, &"tick".into()).await.unwrap(), None);
    let gone = ask(&stage, "tick", ScheduleCommand::Delete).await.unwrap_err();
    assert!(matches!(gone, ScheduleRejection::NotFound { .. }));
    stage.ok(stage.cancel(run)).await;
    ok(&stage, "tick", create(minutely(Overlap::Skip))).await;
}

pub async fn schedules_are_listed_newest_first_and_filtered(stage: Stage) {
    for number in 0..5 {
        ok(&stage, &format!("tick-{number}"), create(minutely(Overlap::Allow))).await;
        stage.pass_ms(1);
    }
    ok(&stage, "tick-2", ScheduleCommand::Pause { note: String::new() }).await;
    let list = async |filter: ScheduleFilter, page: PageRequest| {
        stage.store.schedules(&stage.namespace, &filter, &page).await.expect("reading works")
    };
    let ids = |rows: &[Schedule]| rows.iter().map(|row| row.id.to_string()).collect::<Vec<_>>();
    let first = PageRequest { from: None, direction: Direction::Next, limit: 3 };

    let page = list(ScheduleFilter::default(), first).await;
    assert_eq!(
        (ids(&page.rows), page.has_next),
        (vec!["tick-4".into(), "tick-3".into(), "tick-2".into()], true)
    );
    let last = page.rows.last().unwrap();
    let from = Some(kagzi_store::Cursor { at: last.created_at, id: last.uid });
    let page = list(ScheduleFilter::default(), PageRequest { from, ..first }).await;
    assert_eq!((ids(&page.rows), page.has_prev), (vec!["tick-1".into(), "tick-0".to_owned()], true));
    let top = page.rows.first().unwrap();
    let from = Some(kagzi_store::Cursor { at: top.created_at, id: top.uid });
    let back =
        list(ScheduleFilter::default(), PageRequest { from, direction: Direction::Prev, limit: 2 }).await;
    assert_eq!((ids(&back.rows), back.has_prev), (vec!["tick-3".into(), "tick-2".to_owned()], true));
    let paused = list(ScheduleFilter { paused: Some(true), ..ScheduleFilter::default() }, first).await;
    assert_eq!(ids(&paused.rows), ["tick-2"]);
    let other = ScheduleFilter { workflow_type: Some("other".into()), ..ScheduleFilter::default() };
    assert!(list(other, first).await.rows.is_empty());
}

pub async fn no_schedule_crosses_a_namespace(stage: Stage) {
    ok(&stage, "tick", create(minutely(Overlap::Allow))).await;
    let elsewhere = ScheduleKey { namespace: format!("{}-2", stage.namespace).into(), id: "tick".into() };
    let request = ScheduleRequest { key: elsewhere.clone(), command: ScheduleCommand::Delete };

    let refused = stage.store.schedule(request).await.unwrap();

    assert!(matches!(refused, Err(ScheduleRejection::NotFound { .. })));
    assert_eq!(stage.store.schedule_by_id(&elsewhere.namespace, &"tick".into()).await.unwrap(), None);
    let request = ScheduleRequest { key: elsewhere, command: create(minutely(Overlap::Skip)) };
    assert!(stage.store.schedule(request).await.unwrap().is_ok(), "the id is free there");
}

pub async fn the_observer_is_told_when_a_schedule_is_due(stage: Stage) {
    let begin = last_minute(&stage);
    ok(&stage, "tick", create(minutely(Overlap::Allow))).await;

    assert_eq!(stage.told.schedule_due().await, (begin.plus_ms(MINUTE_MS), true));
    stage.pass_ms(MINUTE_MS as u64);
    sweep(&stage).await;
    assert_eq!(stage.told.schedule_due().await, (begin.plus_ms(2 * MINUTE_MS), false));
}

pub async fn a_run_ended_by_its_worker_or_a_person_frees_the_schedule(stage: Stage) {
    ok(&stage, "tick", create(minutely(Overlap::BufferAll))).await;
    stage.pass_ms(2 * MINUTE_MS as u64);
    sweep(&stage).await;
    let first = runs(&stage, "tick").await[0].1;

    stage
        .ok(RunKey::new(stage.namespace.clone(), first).order(Author::new("tester", "stuck"), act::Terminate))
        .await;

    assert_eq!(runs(&stage, "tick").await.len(), 2);
}

/// For `durability`.
pub(crate) async fn fires_once_over_a_reopening(stage: &mut Stage) {
    ok(stage, "tick", create(minutely(Overlap::BufferAll))).await;
    stage.pass_ms(2 * MINUTE_MS as u64);
    sweep(stage).await;
    let before = row(stage, "tick").await;

    stage.reopen().await;

    assert_eq!(row(stage, "tick").await, before);
    sweep(stage).await;
    assert_eq!(runs(stage, "tick").await.len(), 1, "nothing fires again");
    let first = runs(stage, "tick").await[0].1;
    stage.ok(stage.cancel(first)).await;
    assert_eq!(runs(stage, "tick").await.len(), 2, "what waited still waits");
}

/// Somebody lets a failed run of a schedule go on, or starts it again: what is due meanwhile must not run
/// beside it.
pub async fn a_run_that_is_retried_or_restarted_counts_for_the_overlap_policy(stage: Stage) {
    ok(&stage, "tick", create(minutely(Overlap::Skip))).await;
    let next_minute = async || {
        stage.pass_ms(MINUTE_MS as u64);
        sweep(&stage).await;
        runs(&stage, "tick").await
    };
    let order = |run, order: kagzi_model::Order| {
        RunKey::new(stage.namespace.clone(), run).order(Author::new("tester", "again"), order)
    };
    let first = next_minute().await[0].1;
    stage.ok(order(first, act::Terminate.into())).await;
    let second = next_minute().await[1].1;
    stage.ok(stage.cancel(second)).await;

    stage.ok(order(first, act::Retry { request: None, from: None }.into())).await;
    assert_eq!(next_minute().await.len(), 2, "the first run goes again, so the third time is left out");

    stage.ok(order(first, act::Terminate.into())).await;
    let third = next_minute().await[2].1;
    stage.ok(stage.cancel(third)).await;
    let former = stage.run(first).await;
    let again = StartRun { options: (*former.options).clone(), ..stage.new_run("again") };
    let again = stage.start_with(again).await;
    assert_eq!(next_minute().await.len(), 4, "the restarted run goes, so the fifth time is left out");

    stage.ok(stage.cancel(again)).await;
    assert_eq!(next_minute().await.len(), 5, "nothing goes any more");
    assert_eq!(row(&stage, "tick").await.state.overlapped_total, 2);
}

pub async fn what_is_started_how_late_and_what_is_left_out_is_counted(stage: Stage) {
    let begin = last_minute(&stage);
    let mut standing = stage.stand_by(5).await;
    ok(&stage, "skip", create(minutely(Overlap::Skip))).await;
    ok(&stage, "behind", create(Plan { max_catchup: 1, ..minutely(Overlap::Allow) })).await;
    stage.pass_until_just_before(begin.plus_ms(MINUTE_MS));
    stage.pass_one_tick();
    stage.pass_ms(2_000);
    sweep(&stage).await;
    standing.next().await;
    // The one leaves three times out because its run still goes, the other two because more than one was
    // missed.
    stage.pass_ms(3 * MINUTE_MS as u64);
    sweep(&stage).await;

    let stats = stage.store.stats();
    let counted =
        [&stats.schedule_fires, &stats.schedule_overlapped, &stats.schedule_missed, &stats.schedule_buffered];
    assert_eq!(counted.map(LaneStats::get), [3, 3, 2, 0]);
    let lateness = stats.schedule_lateness.read();
    assert_eq!((lateness.count, lateness.sum), (3, 6_000_000), "each started 2 s after its time");
}

pub async fn a_buffered_time_is_counted_once_and_is_not_late(stage: Stage) {
    let begin = last_minute(&stage);
    let mut standing = stage.stand_by(5).await;
    ok(&stage, "tick", create(minutely(Overlap::BufferAll))).await;
    stage.pass_until_just_before(begin.plus_ms(2 * MINUTE_MS));
    stage.pass_one_tick();
    sweep(&stage).await;
    let first = standing.next().await;

    stage.ok(stage.complete(&first.lease())).await;
    standing.next().await;

    let stats = stage.store.stats();
    assert_eq!([&stats.schedule_fires, &stats.schedule_buffered].map(LaneStats::get), [2, 1]);
    let lateness = stats.schedule_lateness.read();
    assert_eq!((lateness.count, lateness.sum), (1, 60_000_000), "only the first waited for nobody but us");
}

pub async fn runs_carry_the_labels_of_their_schedule_however_they_are_started(stage: Stage) {
    let labelled = |value: &str| Plan {
        labels: [("tenant".into(), value.into())].into_iter().collect(),
        ..minutely(Overlap::Allow)
    };
    let begin = last_minute(&stage);
    ok(&stage, "tick", create(labelled("acme"))).await;
    assert_eq!(row(&stage, "tick").await.plan, labelled("acme"), "they read back as they were written");
    stage.pass_ms(MINUTE_MS as u64);
    sweep(&stage).await;
    let run = RunId(Uuid::now_v7());
    ok(&stage, "tick", ScheduleCommand::Trigger { run, trigger: "now".into() }).await;
    let past = Backfill { after: begin.plus_ms(-2 * MINUTE_MS), to: begin, at_once: true };
    ok(&stage, "tick", ScheduleCommand::Backfill(past)).await;
    sweep(&stage).await;
    let input = Payload::new(&b"the schedule's input"[..]);
    let new = NewSchedule { uid: Uuid::now_v7(), plan: labelled("other"), input, paused: None };
    ok(&stage, "tick", ScheduleCommand::Update { new: Box::new(new), if_version: None }).await;
    stage.pass_ms(MINUTE_MS as u64);
    sweep(&stage).await;

    let with = async |value: &str| {
        let labels = vec![("tenant".into(), value.into())];
        let filter = RunFilter { labels, ..RunFilter::default() };
        stage.store.count_runs(&stage.namespace, &filter).await.unwrap().count
    };
    assert_eq!(runs(&stage, "tick").await.len(), 5);
    assert_eq!(with("acme").await, 4, "one by the clock, one by hand, two of the past");
    assert_eq!(with("other").await, 1, "after the update");
}
