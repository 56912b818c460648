//! What a replay builds on: what a parked run waits for, what the code has dropped, in which order the
//! function was told, and what a retried run executes again.

use kagzi_model::{
    Attempted, Author, Command, Done, EventKind, Failure, JournalState, Name, Ordered, Rejection, Reply,
    RetryPolicy, RunId, RunKey, State, Timestamp, act, journal,
};
use kagzi_model::{LeaseRef, Payload, StepRef, StepResult};

use crate::{
    LEASE_MS, Stage, Standing,
    generations::{continued, on},
    stage::step,
};

const HOUR_MS: i64 = 3_600_000;

pub(crate) async fn leased(stage: &Stage) -> (RunId, LeaseRef, Standing) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    (run, lease, standing)
}

fn failed(lease: &LeaseRef, path: &str, failure: Failure) -> Command {
    lease.report(act::FailStep {
        step: step(path),
        attempt: 1,
        failure,
        policy: RetryPolicy::default(),
        elapsed_ms: 0,
        park: false,
    })
}

fn busy(lease: &LeaseRef, path: &str) -> Command {
    failed(lease, path, Failure::new("BUSY", "later"))
}

pub(crate) fn declined(lease: &LeaseRef, path: &str) -> Command {
    failed(lease, path, Failure::new("DECLINED", "no money").non_retryable())
}

pub(crate) fn sleep(lease: &LeaseRef, path: &str, duration_ms: i64) -> Command {
    lease.report(act::Sleep { step: step(path), duration_ms, park: false })
}

pub(crate) fn park(lease: &LeaseRef, waits: &[&str]) -> Command {
    lease.report(act::Park {
        waits: waits.iter().map(|path| Name::from(*path)).collect(),
        wake: Default::default(),
    })
}

fn fail_with(lease: &LeaseRef, path: &str) -> Command {
    let failure = Failure::new("DECLINED", "no money");
    lease.report(act::Fail { failure, step: Some(path.into()) })
}

pub(crate) fn reopen(stage: &Stage, run: RunId, from: Option<&str>, request: Option<&str>) -> Command {
    let namespace = stage.namespace.clone();
    RunKey::new(namespace, run).order(
        Author::new("tester", ""),
        act::Retry { from: from.map(Name::from), request: request.map(Name::from) },
    )
}

fn due_at(stage_run: &kagzi_model::Run) -> Option<Timestamp> {
    stage_run.due_at()
}

pub async fn a_parked_run_is_due_with_the_steps_it_names_and_the_others_are_closed(stage: Stage) {
    let (run, lease, mut standing) = leased(&stage).await;
    stage.ok(busy(&lease, "flaky")).await;
    stage.ok(sleep(&lease, "loser", 5_000)).await;
    stage.ok(sleep(&lease, "nap", HOUR_MS)).await;

    stage.ok(park(&lease, &["nap"])).await;

    assert_eq!(due_at(&stage.run(run).await), Some(stage.now().plus_ms(HOUR_MS)));
    let parked = stage.events(run).await.pop().unwrap().kind;
    let EventKind::RunParked { closes, opens, .. } = parked else { panic!("not parked: {parked:?}") };
    assert_eq!((closes, opens), (vec![Name::from("flaky"), "loser".into()], vec![]));
    stage.pass_ms(60_000);
    stage.settle().await;
    assert!(standing.ready().is_none(), "a dropped step woke the run");
    stage.pass_ms(HOUR_MS as u64);
    let woken = standing.next().await;
    let claimed = stage.events(run).await.pop().unwrap().kind;
    let EventKind::RunClaimed { slept, .. } = claimed else { panic!("not claimed: {claimed:?}") };
    assert_eq!(slept, [Name::from("nap")], "a sleep that nobody waits for does not end");
    stage.ok(stage.complete(&woken.lease())).await;
}

pub async fn a_closed_step_is_opened_by_the_next_word_and_keeps_its_attempts(stage: Stage) {
    let (run, lease, mut standing) = leased(&stage).await;
    stage.ok(busy(&lease, "flaky")).await;
    stage.ok(sleep(&lease, "nap", 1_000)).await;
    stage.ok(park(&lease, &["nap"])).await;
    stage.pass_ms(1_000);
    let lease = standing.next().await.lease();

    let reply = stage.ok(lease.report(act::FailStep {
        step: step("flaky"),
        attempt: 2,
        failure: Failure::new("BUSY", "later"),
        policy: RetryPolicy::default(),
        elapsed_ms: 0,
        park: false,
    }));

    assert_eq!(
        reply.await,
        Reply::Attempted(Attempted::Retry { at: stage.now().plus_ms(2_000), attempt: 2 })
    );
    stage.ok(park(&lease, &["flaky"])).await;
    assert_eq!(due_at(&stage.run(run).await), Some(stage.now().plus_ms(2_000)));
}

pub async fn a_closed_sleep_that_is_named_again_wakes_the_run(stage: Stage) {
    let (run, lease, mut standing) = leased(&stage).await;
    stage.ok(sleep(&lease, "long", HOUR_MS)).await;
    stage.ok(sleep(&lease, "short", 1_000)).await;
    stage.ok(park(&lease, &["short"])).await;
    stage.pass_ms(1_000);
    let lease = standing.next().await.lease();

    stage.ok(park(&lease, &["long"])).await;

    assert_eq!(due_at(&stage.run(run).await), Some(stage.now().plus_ms(HOUR_MS - 1_000)));
    stage.pass_ms(HOUR_MS as u64);
    standing.next().await;
}

pub async fn a_step_that_was_dropped_while_it_ran_is_not_timed_out(stage: Stage) {
    let (run, lease, _standing) = leased(&stage).await;
    let policy = RetryPolicy::default();
    let begin = lease.report(act::BeginStep {
        step: step("quote"),
        timeout_ms: Some(1_000),
        standard_ms: None,
        policy,
    });
    stage.ok(begin).await;

    let close = lease.report(act::CloseStep { step: step("quote") });
    assert_eq!(stage.ok(close.clone()).await, Reply::Done(Done { already: false }));
    assert_eq!(stage.ok(close).await, Reply::Done(Done { already: true }));

    stage.pass_ms(2_000);
    const { assert!(LEASE_MS > 2_000, "the lease itself still holds") };
    stage.sweep_expired().await;
    assert!(matches!(stage.run(run).await.state, State::Leased(_)), "the healthy run was taken away");
    assert!(stage.event_names(run).await.iter().any(|name| name == "step_closed"));
}

pub async fn a_run_that_parks_without_progress_is_put_off_and_then_paused(stage: Stage) {
    let (run, mut lease, mut standing) = leased(&stage).await;
    stage.ok(busy(&lease, "flaky")).await;
    stage.ok(sleep(&lease, "nap", 1_000_000_000)).await;
    // A worker that cannot say what it waits for: the dropped retry is due for ever.
    stage.ok(park(&lease, &[])).await;
    stage.pass_ms(10_000);

    let mut dispatches = 0;
    let mut delays = Vec::new();
    loop {
        lease = standing.next().await.lease();
        dispatches += 1;
        stage.ok(park(&lease, &[])).await;
        // Due at once, it is leased again in the same commit.
        let delay_ms = match stage.run(run).await.state {
            State::Leased(_) => 0,
            State::Waiting(parked) => parked.at.map_or(0, |at| at.remaining_ms(stage.now())),
            State::Paused { .. } => break,
            other => panic!("the run is {other:?}"),
        };
        delays.push(delay_ms);
        stage.pass_ms(delay_ms as u64);
        assert!(dispatches < 50, "the run spins");
    }

    assert_eq!(delays, [0, 0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000]);
    let paused = stage.run(run).await.state;
    assert!(matches!(&paused, State::Paused { by, .. } if &**by == "spin"), "{paused:?}");
    stage.ok(stage.resume(run)).await;
    lease = standing.next().await.lease();
    stage.ok(stage.complete(&lease)).await;
}

pub async fn a_run_that_does_nothing_but_continue_is_put_off_and_then_paused(stage: Stage) {
    let (run, mut lease, mut standing) = leased(&stage).await;
    // One that does something in between may go on for ever, at any speed.
    for generation in 0..20 {
        stage.ok(stage.record(&lease, "work", b"done")).await;
        lease = on(&stage, &mut standing, &lease, &generation.to_string()).await;
    }

    let mut delays = Vec::new();
    loop {
        stage.ok(continued(&lease, "again")).await;
        // Due at once, it is leased again in the same commit.
        let delay_ms = match stage.run(run).await.state {
            State::Leased(_) => 0,
            State::Waiting(parked) => parked.at.map_or(0, |at| at.remaining_ms(stage.now())),
            State::Paused { .. } => break,
            other => panic!("the run is {other:?}"),
        };
        delays.push(delay_ms);
        assert!(delays.len() < 50, "the run spins");
        stage.pass_ms(delay_ms as u64);
        lease = standing.next().await.lease();
    }

    assert_eq!(delays, [0, 0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000]);
    let paused = stage.run(run).await.state;
    assert!(matches!(&paused, State::Paused { by, .. } if &**by == "spin"), "{paused:?}");
    assert_eq!(stage.event_names(run).await.last().map(String::as_str), Some("run_paused"));
    stage.ok(stage.resume(run)).await;
    lease = standing.next().await.lease();
    lease = on(&stage, &mut standing, &lease, "once more").await;
    stage.ok(stage.complete(&lease)).await;
    assert_eq!(stage.run(run).await.state, State::Completed);
}

pub async fn a_park_after_progress_is_not_put_off(stage: Stage) {
    let (run, mut lease, mut standing) = leased(&stage).await;

    for round in 0..30 {
        stage.ok(sleep(&lease, &format!("nap-{round}"), 0)).await;
        stage.ok(park(&lease, &[&format!("nap-{round}")])).await;
        lease = standing.next().await.lease();
    }

    assert_eq!(stage.run(run).await.dispatch_count, 31);
}

pub async fn the_journal_knows_the_order_in_which_the_function_was_told(stage: Stage) {
    let (run, lease, mut standing) = leased(&stage).await;
    stage.ok(busy(&lease, "flaky")).await;
    stage.ok(sleep(&lease, "short", 1_000)).await;
    stage.ok(stage.record(&lease, "second", b"2")).await;
    stage.ok(declined(&lease, "first")).await;
    stage.ok(park(&lease, &["short", "flaky"])).await;
    stage.pass_ms(1_000);
    let lease = standing.next().await.lease();
    let result = |path: &str| StepResult {
        step: StepRef { path: path.into(), position: 0 },
        attempt: 1,
        result: Payload::new(path.as_bytes().to_vec()),
        elapsed_ms: 1,
    };
    let both = lease.report(act::RecordSteps { steps: vec![result("fifth"), result("fourth")] });
    assert_eq!(stage.ok(both.clone()).await, Reply::Done(Done { already: false }));
    assert_eq!(stage.ok(both).await, Reply::Done(Done { already: true }));

    let mut journal = journal(&stage.events(run).await);

    journal.sort_by_key(|entry| entry.order);
    let orders: Vec<_> = journal.iter().map(|entry| (entry.order, entry.path.to_string())).collect();
    let named = |order, path: &str| (order, path.to_owned());
    assert_eq!(
        orders,
        [
            named(0, "flaky"),
            named(1, "second"),
            named(2, "first"),
            named(3, "short"),
            named(4, "fifth"),
            named(5, "fourth"),
        ]
    );
}

pub async fn several_results_are_recorded_together_or_not_at_all(stage: Stage) {
    let (run, lease, _standing) = leased(&stage).await;
    let nap = StepRef { path: "nap".into(), position: 5 };
    stage.ok(lease.report(act::Sleep { step: nap, duration_ms: 1_000, park: false })).await;
    let before = stage.events(run).await;
    let result = |path: &str, position| StepResult {
        step: StepRef { path: path.into(), position },
        attempt: 1,
        result: Payload::new(path.as_bytes().to_vec()),
        elapsed_ms: 1,
    };

    // The last of them is a sleep, which has no result.
    let steps = vec![result("second", 1), result("nap", 5)];
    let refused = stage.apply(lease.report(act::RecordSteps { steps })).await.unwrap_err();

    assert!(matches!(refused, Rejection::StepDecided { .. }), "{refused:?}");
    assert_eq!(stage.events(run).await, before, "a refused report left something behind");
}

pub async fn a_reopened_run_executes_again_only_what_failed_it(stage: Stage) {
    let (run, lease, mut standing) = leased(&stage).await;
    stage.ok(declined(&lease, "card-a")).await;
    stage.ok(stage.record(&lease, "card-b", b"paid")).await;
    stage.ok(declined(&lease, "ship")).await;
    // Begun because `ship` had failed, and not ended: the code may never come by there again.
    stage.ok(busy(&lease, "apologise")).await;
    stage.ok(fail_with(&lease, "ship")).await;

    stage.ok(reopen(&stage, run, None, None)).await;

    let journal = journal(&stage.events(run).await);
    let entry = |path: &str| journal.iter().find(|entry| *entry.path == *path);
    assert!(matches!(entry("card-a").unwrap().state, JournalState::Failed { .. }), "handled, and history");
    assert!(matches!(entry("card-b").unwrap().state, JournalState::Completed { .. }));
    assert!(matches!(entry("ship").unwrap().state, JournalState::Retry { .. }));
    assert_eq!(entry("ship").unwrap().order, 0);
    assert!(entry("apologise").is_none());
    let lease = standing.next().await.lease();
    let begun = stage.ok(stage.begin(&lease, "card-a")).await;
    assert!(matches!(begun, Reply::Begin(kagzi_model::Begin::Failed { .. })), "{begun:?}");
    let begun = stage.ok(stage.begin(&lease, "ship")).await;
    assert_eq!(begun, Reply::Begin(kagzi_model::Begin::Execute { attempt: 2, timeout_ms: None }));
}

pub async fn a_run_retried_by_policy_executes_again_only_what_failed_it(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let mut start = stage.new_run("order-1");
    start.options.run_retry = Some(RetryPolicy { maximum_attempts: Some(3), ..RetryPolicy::default() });
    let run = stage.start_with(start).await;
    let lease = standing.next().await.lease();
    stage.ok(declined(&lease, "card-a")).await;
    stage.ok(declined(&lease, "card-b")).await;

    stage.ok(fail_with(&lease, "card-b")).await;

    let retried = stage.events(run).await.pop().unwrap().kind;
    let EventKind::RunRetried { forgives, .. } = retried else { panic!("not retried: {retried:?}") };
    assert_eq!(forgives, [Name::from("card-b")]);
}

pub async fn a_run_goes_on_from_an_earlier_failure_only_if_nothing_else_came_after_it(stage: Stage) {
    let (run, lease, mut standing) = leased(&stage).await;
    stage.ok(declined(&lease, "one")).await;
    stage.ok(stage.record(&lease, "two", b"2")).await;
    stage.ok(declined(&lease, "three")).await;
    stage.ok(declined(&lease, "four")).await;
    stage.ok(fail_with(&lease, "four")).await;

    for step in ["one", "two", "five"] {
        let refused = stage.apply(reopen(&stage, run, Some(step), None)).await.unwrap_err();
        assert!(matches!(refused, Rejection::NotForgivable { .. }), "{step}: {refused:?}");
    }
    stage.ok(reopen(&stage, run, Some("three"), None)).await;

    let events = stage.events(run).await;
    let reopened = events.iter().find_map(|event| match &event.kind {
        EventKind::RunReopened { forgives, .. } => Some(forgives.clone()),
        _ => None,
    });
    assert_eq!(reopened, Some(vec![Name::from("three"), "four".into()]));
    stage.ok(stage.complete(&standing.next().await.lease())).await;
}

pub async fn a_request_to_go_on_is_carried_out_once(stage: Stage) {
    let (run, lease, mut standing) = leased(&stage).await;
    stage.ok(stage.fail(&lease)).await;

    stage.ok(reopen(&stage, run, None, Some("request-1"))).await;
    let lease = standing.next().await.lease();
    stage.ok(stage.fail(&lease)).await;
    let repeated = stage.ok(reopen(&stage, run, None, Some("request-1"))).await;

    let status = kagzi_model::Status::Failed;
    assert_eq!(
        repeated,
        Reply::Ordered(Ordered { status, already: true }),
        "the run failed again and stays so"
    );
    let resume = |request: &str| {
        RunKey::new(stage.namespace.clone(), run)
            .order(Author::new("tester", ""), act::Resume { request: Some(request.into()) })
    };
    stage.ok(reopen(&stage, run, None, Some("request-2"))).await;
    let lease = standing.next().await.lease();
    stage.ok(lease.report(act::Block { message: "look".into() })).await;
    stage.ok(resume("request-3")).await;
    let leased = standing.next().await;
    let repeated = stage.ok(resume("request-3")).await;
    assert_eq!(repeated, Reply::Ordered(Ordered { status: kagzi_model::Status::Running, already: true }));
    stage.ok(stage.complete(&leased.lease())).await;
}

pub async fn a_parked_run_says_in_its_history_what_it_waits_for(stage: Stage) {
    let (run, lease, _standing) = leased(&stage).await;
    stage.ok(sleep(&lease, "nap", 1_000)).await;
    stage.ok(sleep(&lease, "long-nap", 60_000)).await;

    stage.ok(park(&lease, &["long-nap"])).await;

    let parked = stage.events(run).await.into_iter().find_map(|event| match event.kind {
        EventKind::RunParked { waits, closes, .. } => Some((waits, closes)),
        _ => None,
    });
    assert_eq!(parked, Some((vec!["long-nap".into()], vec!["nap".into()])));
}
