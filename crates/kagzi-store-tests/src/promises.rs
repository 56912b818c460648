//! A promise is completed once, by whoever has the right to it; a value is what was set last.

use kagzi_model::{
    Author, Command, Done, EventKind, Failure, JournalState, LeaseRef, Payload, Rejection, Reply, RunId,
    RunKey, Signalled, State, Waited, act, journal, limits::VALUES_MAX,
};

use crate::{
    Stage,
    replay_law::{park, reopen},
    signals::wait,
    stage::step,
};

const CHANNEL: &str = "~promise/payment";
const TOLD: Reply = Reply::Signalled(Signalled { already: false });
const TOLD_BEFORE: Reply = Reply::Signalled(Signalled { already: true });

fn make(lease: &LeaseRef, timeout_ms: Option<i64>, heartbeat_ms: Option<i64>) -> Command {
    lease.report(act::MakePromise {
        step: step(CHANNEL),
        name: "payment".into(),
        token_hash: "the hash".into(),
        secret: Payload::new(&b"the secret"[..]),
        timeout_ms,
        heartbeat_ms,
    })
}

fn complete(stage: &Stage, run: RunId, token_hash: Option<&str>, failure: Option<Failure>) -> Command {
    let (name, token_hash) = ("payment".into(), token_hash.map(Into::into));
    let payload = Payload::new(&b"paid"[..]);
    let complete = act::CompletePromise { name, token_hash, payload, failure };
    RunKey::new(stage.namespace.clone(), run).order(Author::new("bank", ""), complete)
}

fn beat(stage: &Stage, run: RunId) -> Command {
    let beat = act::BeatPromise { name: "payment".into(), token_hash: Some("the hash".into()) };
    RunKey::new(stage.namespace.clone(), run).order(Author::new("bank", ""), beat)
}

fn value(lease: &LeaseRef, name: &str, number: u64, value: &str) -> Command {
    let value = Payload::new(value.as_bytes().to_vec());
    lease.report(act::SetValue { name: name.into(), number, value })
}

pub async fn a_promise_is_completed_once_early_or_late(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    assert_eq!(stage.ok(make(&lease, None, None)).await, Reply::Done(Done::NOW));
    assert_eq!(stage.ok(make(&lease, None, None)).await, Reply::Done(Done::BEFORE), "the answer was lost");

    // Before the code waits for it.
    assert_eq!(stage.ok(complete(&stage, run, Some("the hash"), None)).await, TOLD);
    let failed = Some(Failure::new("LATE", "too late"));
    assert_eq!(stage.ok(complete(&stage, run, None, failed)).await, TOLD_BEFORE, "the first word counts");
    let taken = stage.ok(wait(&lease, "payment", CHANNEL, None)).await;
    assert!(matches!(taken, Reply::Waited(Waited::Taken { failure: None, .. })), "{taken:?}");
    let entries = journal(&stage.events(run).await);
    let result = |path: &str| match entries.iter().find(|entry| *entry.path == *path).map(|it| &it.state) {
        Some(JournalState::Completed { result }) => result.data.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(result(CHANNEL), "the secret", "a replay hands the same token out");
    assert_eq!(result("payment"), "paid");
    stage.ok(stage.complete(&lease)).await;
    assert_eq!(stage.ok(complete(&stage, run, None, None)).await, TOLD_BEFORE, "also after the end");
}

pub async fn a_parked_run_goes_on_in_the_commit_that_completes_its_promise(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(make(&lease, None, None)).await;
    stage.ok(wait(&lease, "payment", CHANNEL, None)).await;
    stage.ok(park(&lease, &["payment"])).await;

    stage.ok(complete(&stage, run, Some("the hash"), None)).await;

    assert!(matches!(stage.run(run).await.state, State::Leased(_)));
    assert_eq!(standing.next().await.run.epoch, 2);
}

pub async fn who_has_no_right_to_a_promise_learns_and_changes_nothing(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let early = stage.apply(complete(&stage, run, None, None)).await;
    assert!(matches!(early, Err(Rejection::PromiseUnknown { .. })), "there is none yet: {early:?}");
    let lease = standing.next().await.lease();
    stage.ok(make(&lease, None, None)).await;
    let before = stage.event_names(run).await;

    let forged = stage.apply(complete(&stage, run, Some("another hash"), None)).await;
    assert!(matches!(forged, Err(Rejection::PromiseUnknown { .. })), "{forged:?}");
    let elsewhere = act::CompletePromise {
        name: "payment".into(),
        token_hash: Some("the hash".into()),
        payload: Payload::new(&b"paid"[..]),
        failure: None,
    };
    let elsewhere = RunKey::new("elsewhere", run).order(Author::new("bank", ""), elsewhere);
    let refused = stage.apply(elsewhere).await;
    assert!(matches!(refused, Err(Rejection::NotFound { .. })), "{refused:?}");
    let second = lease.report(act::MakePromise {
        step: step("another step"),
        name: "payment".into(),
        token_hash: "hash of a thief".into(),
        secret: Payload::new(&b"secret"[..]),
        timeout_ms: None,
        heartbeat_ms: None,
    });
    let twice = stage.apply(second).await;
    assert!(matches!(twice, Err(Rejection::PromiseExists { .. })), "{twice:?}");
    assert_eq!(stage.event_names(run).await, before);
    stage.ok(complete(&stage, run, Some("the hash"), None)).await;
    let told = stage.apply(complete(&stage, run, Some("another hash"), None)).await;
    assert!(matches!(told, Err(Rejection::PromiseUnknown { .. })), "not even that it is over: {told:?}");
}

pub async fn the_time_of_a_promise_counts_from_when_it_was_made(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(make(&lease, Some(60_000), None)).await;
    let until = stage.now().plus_ms(60_000);
    stage.pass_ms(20_000);

    let waits = stage.ok(wait(&lease, "payment", CHANNEL, Some(60_000))).await;
    assert_eq!(waits, Reply::Waited(Waited::Until(Some(until))));
    stage.ok(park(&lease, &["payment"])).await;
    stage.pass_until_just_before(until);
    assert_eq!(stage.waits(run).await, ("signal", Some(until)));
    stage.pass_one_tick();

    let lease = standing.next().await.lease();
    let over = stage.ok(wait(&lease, "payment", CHANNEL, None)).await;
    assert_eq!(over, Reply::Waited(Waited::Elapsed));
}

pub async fn a_promise_lives_as_long_as_its_signs_of_life_and_is_silent_after_them(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(make(&lease, None, Some(10_000))).await;
    stage.ok(wait(&lease, "payment", CHANNEL, None)).await;
    stage.ok(park(&lease, &["payment"])).await;

    for _ in 0..10 {
        stage.pass_ms(9_000);
        stage.ok(beat(&stage, run)).await;
        let due = stage.waits(run).await.1.unwrap();
        assert!(due >= stage.now().plus_ms(10_000), "never silent before its time");
        assert!(due <= stage.now().plus_ms(15_000));
    }
    // Ten at once are not ten lines.
    let lines = stage.event_names(run).await.len();
    for _ in 0..10 {
        stage.ok(beat(&stage, run)).await;
    }
    assert!(stage.event_names(run).await.len() <= lines + 1);

    let due = stage.waits(run).await.1.unwrap();
    stage.pass_until_just_before(due);
    stage.settle().await;
    assert_eq!(stage.waits(run).await, ("signal", Some(due)), "not woken before");
    stage.pass_one_tick();
    let lease = standing.next().await.lease();
    let over = stage.ok(wait(&lease, "payment", CHANNEL, None)).await;
    assert_eq!(over, Reply::Waited(Waited::Silent));
    let entries = journal(&stage.events(run).await);
    assert!(entries.iter().any(|entry| &*entry.path == "payment" && entry.silent), "replay is told the same");
    assert_eq!(stage.ok(beat(&stage, run)).await, Reply::Done(Done::BEFORE), "too late");
}

pub async fn a_promise_that_has_failed_is_told_again_to_a_run_that_is_retried(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(make(&lease, None, None)).await;
    let declined = Failure::new("DECLINED", "no money");
    stage.ok(complete(&stage, run, None, Some(declined.clone()))).await;
    let first = stage.ok(wait(&lease, "payment", CHANNEL, None)).await;
    let failed = act::Fail { failure: declined.clone(), step: Some("payment".into()) };
    stage.ok(lease.report(failed)).await;

    stage.ok(reopen(&stage, run, None, None)).await;
    let heir = standing.next().await.lease();
    let again = stage.ok(wait(&heir, "payment", CHANNEL, None)).await;

    // Nobody can complete it a second time, so whoever waits for it again would wait for ever.
    let said = |reply: Reply| match reply {
        Reply::Waited(Waited::Taken { seq, failure, .. }) => (seq, failure),
        other => panic!("{other:?}"),
    };
    assert_eq!(said(again), said(first));
}

pub async fn the_last_value_counts_and_a_replay_sets_nothing_again(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();

    stage.ok(value(&lease, "progress", 1, "one")).await;
    stage.ok(value(&lease, "progress", 4, "four")).await;
    for number in 1..=4 {
        let again = stage.ok(value(&lease, "progress", number, "of a replay")).await;
        assert_eq!(again, Reply::Done(Done::BEFORE));
    }
    stage.ok(value(&lease, "stage", 1, "packing")).await;
    stage.ok(value(&lease, "stage", 0, "of a worker that does not count")).await;

    let set = |kind: &EventKind| matches!(kind, EventKind::ValueSet { .. });
    let events = stage.events(run).await;
    let values: Vec<_> = events
        .iter()
        .filter(|event| set(&event.kind))
        .map(|event| event.payload.clone().unwrap().data)
        .collect();
    assert_eq!(values, ["one", "four", "packing", "of a worker that does not count"]);
    let names: Vec<Command> =
        (0..VALUES_MAX).map(|n| value(&lease, &format!("value-{n}"), 1, "many")).collect();
    let refused = stage.apply_all(names).await.into_iter().filter(Result::is_err).count();
    assert_eq!(refused, 2, "a hundred names, and two were there");
    stage.ok(stage.complete(&lease)).await;
    let late = stage.apply(value(&lease, "progress", 9, "late")).await;
    assert!(matches!(late, Err(Rejection::Ended { .. })), "{late:?}");
}
