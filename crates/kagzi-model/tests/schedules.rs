//! Schedules over time: whatever the policy, the pauses between ticks and the lengths of runs, every nominal
//! time has exactly one fate.

use std::collections::{BTreeMap, BTreeSet};

use kagzi_model::{
    Labels, Payload, RunId, RunOptions, Timestamp,
    limits::{SCHEDULE_BUFFER_MAX, SCHEDULE_SLICE},
    schedule::{
        Backfill, NewSchedule, Overlap, Plan, Schedule, ScheduleCommand, ScheduleKey, ScheduleRejection,
        ScheduleRequest, Timetable, Timing, change, scheduled_business_id, tick,
    },
};
use proptest::prelude::*;
use uuid::Uuid;

const BEGIN: Timestamp = Timestamp::from_millis(1_794_787_200_000); // 2026-11-16T00:00:00Z
const MINUTE_MS: i64 = 60_000;

fn plan(overlap: Overlap) -> Plan {
    Plan {
        timing: Timing::Cron { expression: "* * * * *".into(), time_zone: "UTC".into() },
        workflow_type: "report".into(),
        task_queue: "reports".into(),
        options: RunOptions::default(),
        labels: Labels::default(),
        overlap,
        jitter_ms: 0,
        max_catchup: 100,
    }
}

fn request(command: ScheduleCommand) -> ScheduleRequest {
    ScheduleRequest { key: ScheduleKey { namespace: "default".into(), id: "minutely".into() }, command }
}

fn new(plan: Plan) -> Box<NewSchedule> {
    Box::new(NewSchedule { uid: Uuid::from_u128(7), plan, input: Payload::new(&b"{}"[..]), paused: None })
}

fn created(plan: Plan) -> World {
    let made = change(BEGIN, None, &request(ScheduleCommand::Create(new(plan)))).unwrap();
    let timetable = made.schedule.plan.timing.timetable().unwrap();
    World { now: BEGIN, schedule: made.schedule, timetable, going: BTreeSet::new(), fired: BTreeMap::new() }
}

/// A schedule, the runs it started, and a hand on the clock.
struct World {
    now: Timestamp,
    schedule: Schedule,
    timetable: Timetable,
    going: BTreeSet<RunId>,
    fired: BTreeMap<Timestamp, RunId>,
}

impl World {
    fn pass_ms(&mut self, ms: i64) {
        self.now = self.now.plus_ms(ms);
    }

    /// One round, as a store does it. Answers with what was started.
    fn tick(&mut self) -> Vec<Timestamp> {
        let going =
            self.schedule.state.running.iter().copied().filter(|run| self.going.contains(run)).collect();
        let round = tick(self.now, &self.schedule, &self.timetable, going, SCHEDULE_SLICE);
        for ended in round.cancel.iter().chain(&round.terminate) {
            assert!(self.going.remove(ended), "only a run that goes is ended");
        }
        let mut started = Vec::new();
        for fire in &round.fires {
            assert!(
                self.fired.insert(fire.nominal_at, fire.start.id).is_none(),
                "{:?} twice",
                fire.nominal_at
            );
            assert!(fire.nominal_at <= self.now, "never early");
            let named = scheduled_business_id(&"minutely".into(), fire.nominal_at);
            assert_eq!(fire.start.business_id, Some(named));
            self.going.insert(fire.start.id);
            started.push(fire.nominal_at);
        }
        let runs: Vec<RunId> = round.fires.iter().map(|fire| fire.start.id).collect();
        self.schedule = round.settle(self.now, &self.timetable, &runs);
        started
    }

    /// Rounds until nothing is due any more.
    fn settle(&mut self) -> usize {
        let mut started = 0;
        while self.schedule.state.next_at.is_some_and(|at| at <= self.now) {
            started += self.tick().len();
        }
        started
    }

    fn ask(&mut self, command: ScheduleCommand) -> Result<(), ScheduleRejection> {
        self.schedule = change(self.now, Some(&self.schedule), &request(command))?.schedule;
        Ok(())
    }

    fn end_all(&mut self) {
        self.going.clear();
    }
}

#[test]
fn each_minute_fires_once_and_the_next_is_armed() {
    let mut world = created(plan(Overlap::Allow));

    for minute in 1..=5 {
        let due = BEGIN.plus_ms(minute * MINUTE_MS);
        assert_eq!(world.schedule.state.next_at, Some(due));
        world.now = due;
        assert_eq!(world.tick(), [due]);
    }
    assert_eq!(world.schedule.state.started_total, 5);
}

#[test]
fn after_thirty_days_the_newest_hundred_are_made_up_for_and_the_rest_is_counted() {
    let mut world = created(plan(Overlap::Allow));
    world.pass_ms(30 * 24 * 60 * MINUTE_MS);

    let first = world.tick();
    assert_eq!(first.len(), SCHEDULE_SLICE, "a slice, so that others get their turn");
    assert_eq!(world.schedule.state.next_at, Some(world.now), "behind whoever was due before");
    let others = world.settle();

    assert_eq!(first.len() + others, 100);
    assert_eq!(world.schedule.state.missed_total, 30 * 24 * 60 - 100);
    assert_eq!(*world.fired.keys().next_back().unwrap(), world.now);
    assert_eq!(*world.fired.keys().next().unwrap(), world.now.plus_ms(-99 * MINUTE_MS));
}

#[test]
fn skip_leaves_out_what_comes_while_a_run_goes() {
    let mut world = created(plan(Overlap::Skip));
    world.pass_ms(MINUTE_MS);
    assert_eq!(world.tick().len(), 1);
    world.pass_ms(MINUTE_MS);
    assert_eq!(world.tick().len(), 0);
    world.end_all();
    world.pass_ms(MINUTE_MS);

    assert_eq!(world.tick().len(), 1);
    assert_eq!(world.schedule.state.overlapped_total, 1);
}

#[test]
fn buffer_one_keeps_one_and_starts_it_at_the_end_of_the_run_before() {
    let mut world = created(plan(Overlap::BufferOne));
    for _ in 0..4 {
        world.pass_ms(MINUTE_MS);
        world.settle();
    }
    assert_eq!((world.fired.len(), world.schedule.state.buffer.len()), (1, 1));
    assert_eq!(world.schedule.state.overlapped_total, 2);
    assert!(world.schedule.waits_for_an_end());

    world.end_all();

    assert_eq!(world.tick(), [BEGIN.plus_ms(2 * MINUTE_MS)]);
}

#[test]
fn buffer_all_starts_one_after_the_other_in_order() {
    let mut world = created(plan(Overlap::BufferAll));
    world.pass_ms(4 * MINUTE_MS);
    let mut order = Vec::new();
    for _ in 0..4 {
        order.extend(world.tick());
        assert_eq!(world.going.len(), 1, "one at a time");
        world.end_all();
    }

    assert_eq!(order, (1..=4).map(|minute| BEGIN.plus_ms(minute * MINUTE_MS)).collect::<Vec<_>>());
}

#[test]
fn cancel_and_terminate_end_the_run_before_and_start_the_newest() {
    for overlap in [Overlap::CancelPrevious, Overlap::TerminatePrevious] {
        let mut world = created(plan(overlap));
        world.pass_ms(MINUTE_MS);
        let first = world.tick();
        world.pass_ms(3 * MINUTE_MS);

        let second = world.tick();

        assert_eq!((first.len(), second), (1, vec![world.now]), "{overlap:?}");
        assert_eq!(world.going.len(), 1, "the run before was ended");
        assert_eq!(world.schedule.state.overlapped_total, 2);
    }
}

#[test]
fn jitter_moves_the_start_and_not_the_nominal_time() {
    let mut world = created(Plan { jitter_ms: 30_000, ..plan(Overlap::Allow) });
    let nominal = BEGIN.plus_ms(MINUTE_MS);
    let due = world.schedule.state.next_at.unwrap();
    assert_eq!(due, world.schedule.start_of(nominal));
    assert!(due >= nominal && due < nominal.plus_ms(30_000));

    world.now = Timestamp(due.0 - 1);
    assert!(world.tick().is_empty());
    world.now = due;

    assert_eq!(world.tick(), [nominal]);
}

#[test]
fn a_pause_holds_everything_and_a_resume_chooses() {
    for (catch_up, expected) in [(false, 0), (true, 10)] {
        let mut world = created(plan(Overlap::Allow));
        world.ask(ScheduleCommand::Pause { note: "migration".into() }).unwrap();
        assert_eq!(world.schedule.state.next_at, None);
        world.pass_ms(10 * MINUTE_MS);
        world.tick();
        assert!(world.fired.is_empty());

        world.ask(ScheduleCommand::Resume { catch_up }).unwrap();
        world.settle();

        assert_eq!(world.fired.len(), expected);
        assert_eq!(world.schedule.state.missed_total, 10 - expected as u64);
        assert!(world.schedule.state.paused.is_none());
    }
}

#[test]
fn a_backfill_runs_its_range_in_order_even_while_paused() {
    for at_once in [false, true] {
        let mut world = created(plan(Overlap::Skip));
        world.ask(ScheduleCommand::Pause { note: String::new() }).unwrap();
        let (after, to) = (BEGIN.plus_ms(-25 * MINUTE_MS), BEGIN);
        let range = Backfill { after, to, at_once };
        world.ask(ScheduleCommand::Backfill(range)).unwrap();
        world.ask(ScheduleCommand::Backfill(range)).unwrap();
        assert_eq!(world.schedule.state.backfills.len(), 1, "sent twice is asked once");

        while !world.schedule.state.backfills.is_empty() {
            world.tick();
            assert!(at_once || world.going.len() <= 1);
            world.end_all();
        }

        let fired: Vec<_> = world.fired.keys().copied().collect();
        assert_eq!(fired, (-24..=0).map(|minute| BEGIN.plus_ms(minute * MINUTE_MS)).collect::<Vec<_>>());
    }
}

#[test]
fn impossible_requests_are_refused_with_a_reason() {
    let mut world = created(plan(Overlap::Allow));
    world.pass_ms(MINUTE_MS);
    let now = world.now;
    let mut backfill = |after_ms: i64, to_ms: i64| {
        let range = Backfill { after: now.plus_ms(after_ms), to: now.plus_ms(to_ms), at_once: true };
        world.ask(ScheduleCommand::Backfill(range)).unwrap_err().to_string()
    };
    assert!(backfill(0, 0).contains("empty"));
    assert!(backfill(0, 1).contains("future"));
    assert!(backfill(-59_000, -1_000).contains("no time"));
    assert!(backfill(-365 * 24 * 60 * MINUTE_MS, 0).contains("525600 times"));

    let over = Timing::Cron { expression: "0 0 0 1 1 * 2026".into(), time_zone: "UTC".into() };
    let over = Plan { timing: over, ..plan(Overlap::Allow) };
    let refused = change(now, None, &request(ScheduleCommand::Create(new(over)))).unwrap_err();
    assert_eq!(refused, ScheduleRejection::NothingLeft);
    let stale = ScheduleCommand::Update { new: new(plan(Overlap::Skip)), if_version: Some(9) };
    assert!(world.ask(stale).unwrap_err().to_string().contains("version 1"));
    let other = request(ScheduleCommand::Create(new(plan(Overlap::Skip))));
    let exists = change(now, Some(&world.schedule), &other).unwrap_err().to_string();
    assert!(exists.contains("another plan"), "{exists}");
    assert!(matches!(
        change(now, None, &request(ScheduleCommand::Delete)),
        Err(ScheduleRejection::NotFound { .. })
    ));
}

#[test]
fn a_new_timetable_has_missed_nothing() {
    let mut world = created(plan(Overlap::Allow));
    world.pass_ms(10 * MINUTE_MS + 1);
    let hourly = Timing::Interval { every_ms: 60 * MINUTE_MS, phase_ms: 0 };
    let update = new(Plan { timing: hourly, ..plan(Overlap::Allow) });
    world.ask(ScheduleCommand::Update { new: update, if_version: None }).unwrap();
    world.timetable = world.schedule.plan.timing.timetable().unwrap();

    assert_eq!(world.settle(), 0);
    assert_eq!(world.schedule.state.next_at, Some(BEGIN.plus_ms(60 * MINUTE_MS)));
}

#[test]
fn a_trigger_starts_outside_the_timetable_and_counts_as_running() {
    let mut world = created(plan(Overlap::Skip));
    let run = RunId(Uuid::from_u128(42));
    let asked = request(ScheduleCommand::Trigger { run, trigger: "t-1".into() });
    let answer = change(world.now, Some(&world.schedule), &asked).unwrap();
    let start = answer.start.unwrap();
    assert_eq!(start.business_id.as_deref(), Some("schedule:minutely:trigger:t-1"));
    assert_eq!(start.options.scheduled.unwrap().at, world.now);
    world.schedule.note_started(run, world.now, world.now);
    world.going.insert(run);

    world.pass_ms(MINUTE_MS);

    assert_eq!(world.tick().len(), 0, "the triggered run still goes");
    assert_eq!(world.schedule.state.overlapped_total, 1);
}

fn any_overlap() -> impl Strategy<Value = Overlap> {
    prop::sample::select(Overlap::ALL.to_vec())
}

/// (seconds that pass, whether all runs end then)
fn any_life() -> impl Strategy<Value = Vec<(i64, bool)>> {
    prop::collection::vec((prop_oneof![4 => 0..200_i64, 1 => 200..100_000_i64], any::<bool>()), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_time_has_exactly_one_fate(
        overlap in any_overlap(),
        life in any_life(),
        jitter_s in prop_oneof![Just(0_i64), 1..90_i64],
        max_catchup in 1..150_u32,
    ) {
        let mut world = created(Plan { jitter_ms: jitter_s * 1000, max_catchup, ..plan(overlap) });
        for (seconds, ended) in life {
            world.pass_ms(seconds * 1000);
            if ended {
                world.end_all();
            }
            let before = world.fired.len();
            world.settle();

            // Nothing twice is asserted by the world itself. Nothing between is lost:
            let state = &world.schedule.state;
            let decided = world.timetable.count(BEGIN, state.decided_until);
            let (fired, buffered) = (world.fired.len() as u64, state.buffer.len() as u64);
            let fates = fired + state.overlapped_total + state.missed_total + buffered;
            prop_assert_eq!(fates, decided);
            prop_assert_eq!(state.started_total, world.fired.len() as u64);
            let next = world.timetable.next_after(state.decided_until).unwrap();
            prop_assert!(world.schedule.start_of(next) > world.now, "what is due is decided");
            prop_assert!(state.buffer.len() <= SCHEDULE_BUFFER_MAX);
            let single = matches!(overlap, Overlap::Skip | Overlap::BufferOne | Overlap::BufferAll
                | Overlap::CancelPrevious | Overlap::TerminatePrevious);
            prop_assert!(!single || world.going.len() <= 1, "no two runs at once");
            prop_assert!(!single || world.fired.len() - before <= 2);
        }
    }

    #[test]
    fn counting_and_listing_agree_in_every_zone(
        expression in prop::sample::select(vec![
            "*/7 * * * *", "0 */3 * * *", "30 1-3 * * *", "15,45 0,2,23 * * *", "0 0 * * SUN",
            "*/11 2 * * *", "0 30 2 * * *",
        ]),
        zone in prop::sample::select(vec![
            "UTC", "America/New_York", "America/Santiago", "Australia/Lord_Howe", "Asia/Kolkata",
            "Pacific/Apia", "Africa/Casablanca", "Europe/Dublin",
        ]),
        start_h in 0..(24 * 366_i64),
        length_h in 1..200_i64,
    ) {
        let timing = Timing::Cron { expression: expression.into(), time_zone: zone.into() };
        let table = timing.timetable().unwrap();
        let from = BEGIN.plus_ms(start_h * 3_600_000);
        let to = from.plus_ms(length_h * 3_600_000);

        let listed: Vec<_> = table.upcoming(from, 100_000.min(table.count(from, to) as usize + 1));
        let inside = listed.iter().filter(|at| **at <= to).count();

        prop_assert_eq!(table.count(from, to), inside as u64);
        prop_assert!(listed.windows(2).all(|pair| pair[0] < pair[1]));
        let (cut, left_out) = table.newest(5, from, to);
        prop_assert_eq!(table.count(cut, to) + left_out, inside as u64);
        prop_assert!(table.count(cut, to) <= 5);
    }
}
