//! What is told to a run is taken once and in order, by whoever waits for it, and by nobody else.

use kagzi_model::{
    Author, Command, Failure, JournalState, LeaseRef, Payload, Rejection, Reply, RunId, RunKey, Signalled,
    State, Waited, act, journal, limits::UNREAD_MAX,
};
use kagzi_store::LaneStats;

use crate::{Stage, replay_law::park, stage::step};

pub(crate) fn signal(stage: &Stage, run: RunId, channel: &str, id: &str) -> Command {
    let (channel, payload) = (channel.into(), Payload::new(id.as_bytes().to_vec()));
    let signal = act::Signal { channel, id: id.into(), payload, failure: None };
    RunKey::new(stage.namespace.clone(), run).order(Author::new("tester", ""), signal)
}

pub(crate) fn wait(lease: &LeaseRef, path: &str, channel: &str, timeout_ms: Option<i64>) -> Command {
    let (channel, last_call, park) = (channel.into(), false, false);
    lease.report(act::AwaitSignal { step: step(path), channel, timeout_ms, last_call, park })
}

fn last_call(lease: &LeaseRef, path: &str, channel: &str) -> Command {
    let (channel, timeout_ms, park) = (channel.into(), None, false);
    lease.report(act::AwaitSignal { step: step(path), channel, timeout_ms, last_call: true, park })
}

pub(crate) const TOLD: Reply = Reply::Signalled(Signalled { already: false });
pub(crate) const TOLD_BEFORE: Reply = Reply::Signalled(Signalled { already: true });

/// What the waits of the run took, by path, in the order in which its function is told.
pub(crate) async fn taken(stage: &Stage, run: RunId) -> Vec<(String, String)> {
    let mut entries = journal(&stage.events(run).await);
    entries.retain(|entry| entry.order > 0);
    entries.sort_by_key(|entry| entry.order);
    let text = |state: &JournalState| match state {
        JournalState::Completed { result } => String::from_utf8_lossy(&result.data).into_owned(),
        other => format!("{other:?}"),
    };
    entries.iter().map(|entry| (entry.path.to_string(), text(&entry.state))).collect()
}

pub async fn a_signal_that_comes_early_waits_for_its_wait(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();

    assert_eq!(stage.ok(signal(&stage, run, "approved", "ada")).await, TOLD);
    let reply = stage.ok(wait(&lease, "ok", "approved", None)).await;

    let Reply::Waited(Waited::Taken { seq, failure: None, .. }) = reply else { panic!("{reply:?}") };
    let held = stage.events(run).await.into_iter().find(|event| event.seq == seq).unwrap();
    assert_eq!(held.payload.map(|payload| payload.data), Some("ada".into()));
    assert_eq!(taken(&stage, run).await, [("ok".to_owned(), "ada".to_owned())]);
    stage.ok(stage.complete(&lease)).await;
}

pub async fn signals_are_taken_in_order_and_once(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();

    for id in ["tea", "milk", "tea", "cups"] {
        stage.ok(signal(&stage, run, "item", id)).await;
    }
    for n in 0..3 {
        stage.ok(wait(&lease, &format!("item#{n}"), "item", None)).await;
    }

    let items: Vec<_> = taken(&stage, run).await.into_iter().map(|(_, item)| item).collect();
    assert_eq!(items, ["tea", "milk", "cups"]);
    assert_eq!(
        stage.ok(wait(&lease, "item#3", "item", None)).await,
        Reply::Waited(Waited::Until(None)),
        "nothing is taken twice"
    );
}

pub async fn a_parked_run_goes_on_in_the_commit_of_its_signal(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(wait(&lease, "ok", "approved", None)).await;
    stage.ok(park(&lease, &["ok"])).await;
    assert_eq!(stage.waits(run).await, ("signal", None));
    assert_eq!(stage.active(standing.worker).await, 0, "a run that waits holds no slot");

    stage.ok(signal(&stage, run, "approved", "ada")).await;

    // Leased again by the time the sender is told: one commit.
    assert!(matches!(stage.run(run).await.state, State::Leased(_)));
    assert_eq!(standing.next().await.run.epoch, 2);
    assert_eq!(taken(&stage, run).await, [("ok".to_owned(), "ada".to_owned())]);
}

pub async fn a_signal_for_a_run_that_is_executed_is_hinted_and_taken_when_the_code_asks(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let waits = stage.ok(wait(&lease, "ok", "approved", None)).await;
    assert_eq!(waits, Reply::Waited(Waited::Until(None)));

    stage.ok(signal(&stage, run, "approved", "ada")).await;

    let notice = stage.told.signalled(run).await;
    assert_eq!((notice.worker, notice.epoch, &*notice.channel), (standing.worker, 1, "approved"));
    assert_eq!(taken(&stage, run).await, [], "its place in the order is the worker's to say");
    let asked = stage.ok(wait(&lease, "ok", "approved", None)).await;
    assert!(matches!(asked, Reply::Waited(Waited::Taken { .. })), "{asked:?}");
    // The answer was lost, and it is asked again.
    assert_eq!(stage.ok(wait(&lease, "ok", "approved", None)).await, asked);
}

pub async fn a_signal_that_comes_while_the_park_is_on_its_way_is_not_slept_through(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(wait(&lease, "ok", "approved", None)).await;
    stage.ok(signal(&stage, run, "approved", "ada")).await;

    stage.ok(park(&lease, &["ok"])).await;

    assert_eq!(standing.next().await.run.epoch, 2, "it goes on at once");
    assert_eq!(taken(&stage, run).await, [("ok".to_owned(), "ada".to_owned())]);
}

pub async fn of_two_waits_that_race_the_loser_takes_nothing(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(wait(&lease, "yes", "approved", None)).await;
    stage.ok(wait(&lease, "no", "declined", None)).await;
    stage.ok(park(&lease, &["yes", "no"])).await;

    stage.ok(signal(&stage, run, "approved", "ada")).await;
    stage.ok(signal(&stage, run, "declined", "bob")).await;

    // What the function makes of the first may be that it does not wait for the second any more.
    assert_eq!(taken(&stage, run).await, [("yes".to_owned(), "ada".to_owned())]);
    let lease = standing.next().await.lease();
    let second = stage.ok(wait(&lease, "again", "declined", None)).await;
    assert!(matches!(second, Reply::Waited(Waited::Taken { .. })), "it lies there for whoever asks");
}

pub async fn the_timeout_and_a_signal_at_the_same_instant_have_one_winner(stage: Stage) {
    let mut standing = stage.stand_by(2).await;
    for (first, signalled) in [("timeout", false), ("signal", true)] {
        let run = stage.start(first).await;
        let lease = standing.next().await.lease();
        stage.ok(wait(&lease, "ok", "approved", Some(60_000))).await;
        let until = stage.now().plus_ms(60_000);
        stage.ok(park(&lease, &["ok"])).await;
        assert_eq!(stage.waits(run).await, ("signal", Some(until)));
        stage.pass_until_just_before(until);
        if signalled {
            stage.ok(signal(&stage, run, "approved", "ada")).await;
        }
        stage.pass_one_tick();
        let lease = standing.next().await.lease();
        if !signalled {
            stage.ok(signal(&stage, run, "approved", "ada")).await;
        }

        let expected = if signalled { "ada".to_owned() } else { "Slept".to_owned() };
        assert_eq!(taken(&stage, run).await, [("ok".to_owned(), expected)], "{first} was first");
        if !signalled {
            let later = stage.ok(wait(&lease, "later", "approved", None)).await;
            assert!(matches!(later, Reply::Waited(Waited::Taken { .. })), "late, and not lost");
        }
        stage.ok(stage.complete(&lease)).await;
    }
}

pub async fn a_wait_that_the_code_dropped_at_its_end_gives_its_signal_back(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(signal(&stage, run, "item", "tea")).await;
    stage.ok(signal(&stage, run, "item", "milk")).await;
    stage.ok(wait(&lease, "dropped", "item", None)).await;

    stage.ok(lease.report(act::CloseStep { step: step("dropped") })).await;
    stage.ok(wait(&lease, "first", "item", None)).await;
    stage.ok(wait(&lease, "second", "item", None)).await;

    let items = [("first".to_owned(), "tea".to_owned()), ("second".to_owned(), "milk".to_owned())];
    assert_eq!(taken(&stage, run).await, items, "in front of its channel, not behind it");
}

pub async fn a_closed_channel_refuses_and_loses_nothing(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(signal(&stage, run, "item", "tea")).await;

    let first = stage.ok(last_call(&lease, "item", "item")).await;
    assert!(matches!(first, Reply::Waited(Waited::Taken { .. })), "{first:?}");
    assert_eq!(stage.ok(last_call(&lease, "item#2", "item")).await, Reply::Waited(Waited::Closed));

    let refused = stage.apply(signal(&stage, run, "item", "late")).await;
    assert!(matches!(refused, Err(Rejection::ChannelClosed { .. })), "{refused:?}");
    assert_eq!(stage.ok(signal(&stage, run, "item", "tea")).await, TOLD_BEFORE, "told, and taken");
    assert_eq!(stage.ok(signal(&stage, run, "other", "late")).await, TOLD, "other channels are open");
}

pub async fn a_signal_that_says_failed_ends_its_wait_with_the_error(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(wait(&lease, "ok", "approved", None)).await;
    stage.ok(park(&lease, &["ok"])).await;

    let failure = Failure::new("DECLINED", "no");
    let failed = act::Signal {
        channel: "approved".into(),
        id: "bob".into(),
        payload: Payload::new(&b""[..]),
        failure: Some(failure.clone()),
    };
    let command = RunKey::new(stage.namespace.clone(), run).order(Author::new("bob", ""), failed);
    stage.ok(command).await;

    let lease = standing.next().await.lease();
    let again = stage.ok(wait(&lease, "ok", "approved", None)).await;
    let Reply::Waited(Waited::Taken { failure: Some(told), .. }) = again else { panic!("{again:?}") };
    assert_eq!(told, failure);
}

pub async fn unread_signals_are_bounded_and_the_rest_is_refused(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let ids: Vec<String> = (0..UNREAD_MAX).map(|n| format!("s-{n}")).collect();
    let all = ids.iter().map(|id| signal(&stage, run, "item", id)).collect();
    assert!(stage.apply_all(all).await.into_iter().all(|outcome| outcome == Ok(TOLD)));

    let one_more = stage.apply(signal(&stage, run, "item", "one-more")).await;
    assert!(matches!(one_more, Err(Rejection::TooManySignals { .. })), "{one_more:?}");
    assert_eq!(stage.ok(signal(&stage, run, "item", "s-7")).await, TOLD_BEFORE);
    stage.ok(wait(&lease, "item", "item", None)).await;
    assert_eq!(stage.ok(signal(&stage, run, "item", "one-more")).await, TOLD, "one was read");
}

pub async fn what_becomes_of_signals_is_counted(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let stats = stage.store.stats();
    let counters =
        [&stats.signals_told, &stats.signals_repeated, &stats.signals_full, &stats.signals_refused];
    let before = counters.map(LaneStats::get);

    let many = (0..UNREAD_MAX).map(|n| signal(&stage, run, "item", &format!("s-{n}"))).collect();
    stage.apply_all(many).await;
    let repeated = stage.apply(signal(&stage, run, "item", "s-1")).await;
    let full = stage.apply(signal(&stage, run, "item", "one-more")).await;
    stage.ok(stage.complete(&lease)).await;
    let late = stage.apply(signal(&stage, run, "item", "late")).await;

    assert!(repeated.is_ok() && full.is_err() && late.is_err(), "{repeated:?} {full:?} {late:?}");
    let after = counters.map(LaneStats::get);
    let counted: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    assert_eq!(counted, [UNREAD_MAX as u64, 1, 1, 1]);
}

pub async fn an_ended_run_takes_no_signal_and_says_so(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(signal(&stage, run, "item", "tea")).await;
    stage.ok(stage.complete(&lease)).await;

    let refused = stage.apply(signal(&stage, run, "item", "late")).await;

    assert!(matches!(refused, Err(Rejection::Ended { .. })), "{refused:?}");
    assert_eq!(stage.ok(signal(&stage, run, "item", "tea")).await, TOLD_BEFORE);
}

pub async fn a_wait_whose_signal_came_in_time_is_not_over_when_the_run_is_claimed_late(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(wait(&lease, "yes", "approved", Some(1_000))).await;
    stage.ok(wait(&lease, "no", "declined", None)).await;
    stage.ok(park(&lease, &["yes", "no"])).await;
    // Somebody else has the only slot, so the run is ready and waits.
    stage.start("order-2").await;
    let other = standing.next().await.lease();
    stage.ok(signal(&stage, run, "declined", "bob")).await;
    stage.ok(signal(&stage, run, "approved", "ada")).await;

    stage.pass_ms(1_001);
    stage.ok(stage.complete(&other)).await;
    let lease = standing.next().await.lease();

    assert_eq!(taken(&stage, run).await, [("no".to_owned(), "bob".to_owned())], "nothing else is over");
    let asked = stage.ok(wait(&lease, "yes", "approved", Some(1_000))).await;
    assert!(matches!(asked, Reply::Waited(Waited::Taken { .. })), "{asked:?}");
}
