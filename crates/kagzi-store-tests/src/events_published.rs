//! A published event reaches every run that waits for it, once; and those that wait for it later, as long as
//! it is kept.

use kagzi_model::{
    Author, Command, EventKind, LeaseRef, Name, Payload, PublishEvent, PublishRejection, PublishReply,
    Rejection, Reply, RunId, RunKey, State, Topic, TopicKey, Waited, act, limits::EVENT_KEEP_MS_STANDARD,
};
use kagzi_store::{Direction, LaneStats, SweepKind};

use crate::{Stage, replay_law::park, signals::wait};

pub(crate) fn event(stage: &Stage, topic: &str, key: &str, id: &str) -> PublishEvent {
    PublishEvent {
        key: TopicKey { namespace: stage.namespace.clone(), topic: Topic::new(topic, key) },
        id: id.into(),
        payload: Payload::new(id.as_bytes().to_vec()),
        keep_ms: EVENT_KEEP_MS_STANDARD,
    }
}

pub(crate) async fn publish(stage: &Stage, event: PublishEvent) -> PublishReply {
    stage.store.ask(event).await.unwrap().expect("it is published")
}

/// Delivers until there is nothing more to deliver.
pub(crate) async fn deliver(stage: &Stage) {
    while stage.store.sweep(SweepKind::Events {}).await.unwrap().more {}
}

pub(crate) fn paid(key: &str) -> Name {
    Topic::new("order.paid", key).channel()
}

/// What events the run has heard of, by the ids, in the order in which they came.
pub(crate) async fn heard(stage: &Stage, run: RunId) -> Vec<String> {
    let events = stage.events(run).await;
    let heard = events.into_iter().filter_map(|event| match event.kind {
        EventKind::SignalReceived { id, published: Some(_), .. }
        | EventKind::WaitEnded { id, published: Some(_), .. } => Some(id.to_string()),
        _ => None,
    });
    heard.collect()
}

/// A run whose code waits for the event, parked.
async fn waits(stage: &Stage, lease: &LeaseRef, path: &str, key: &str) {
    let reply = stage.ok(wait(lease, path, &paid(key), None)).await;
    assert_eq!(reply, Reply::Waited(Waited::Until(None)));
    stage.ok(park(lease, &[path])).await;
}

fn took(reply: &Reply) -> String {
    let Reply::Waited(Waited::Taken { id, failure: None, .. }) = reply else { panic!("{reply:?}") };
    id.to_string()
}

pub async fn an_event_reaches_every_run_that_waits_for_it_and_no_other(stage: Stage) {
    let mut standing = stage.stand_by(4).await;
    let mut runs = Vec::new();
    for (n, key) in ["42", "42", "43", ""].into_iter().enumerate() {
        let run = stage.start(&format!("order-{n}")).await;
        let lease = standing.next().await.lease();
        waits(&stage, &lease, "paid", key).await;
        runs.push(run);
    }
    assert_eq!(stage.waits(runs[0]).await, ("event", None));

    let reply = publish(&stage, event(&stage, "order.paid", "42", "e1")).await;
    assert!(!reply.already);
    assert_eq!(stage.waits(runs[0]).await.0, "event", "a publisher touches no run");
    deliver(&stage).await;

    for (run, expected) in runs.iter().zip([&["e1"][..], &["e1"], &[], &[]]) {
        assert_eq!(heard(&stage, *run).await, expected, "{run}");
    }
    assert!(matches!(stage.run(runs[0]).await.state, State::Leased(_)), "given out in the same commit");
    assert_eq!(stage.waits(runs[3]).await.0, "event");
}

pub async fn an_event_counts_once_by_its_id_on_its_topic(stage: Stage) {
    let first = publish(&stage, event(&stage, "order.paid", "42", "e1")).await;
    stage.pass_ms(5);

    let again = PublishEvent { payload: Payload::new("other"), ..event(&stage, "order.paid", "42", "e1") };
    assert_eq!(publish(&stage, again).await, PublishReply { already: true, at: first.at });
    assert!(!publish(&stage, event(&stage, "order.paid", "43", "e1")).await.already, "another key");
    assert!(!publish(&stage, event(&stage, "order.lost", "42", "e1")).await.already, "another topic");

    let kept = stage.store.kept_events(&stage.namespace, None, Direction::Next, None, 10).await.unwrap();
    let ids: Vec<_> = kept.iter().map(|event| (&*event.key.topic.name, &*event.key.topic.key)).collect();
    assert_eq!(ids, [("order.lost", "42"), ("order.paid", "42"), ("order.paid", "43")]);
    assert_eq!(kept[1].payload_bytes, 2, "the first one counts");
}

pub async fn a_run_that_waits_later_finds_what_was_published_since_it_was_created(stage: Stage) {
    let mut standing = stage.stand_by(2).await;
    publish(&stage, event(&stage, "order.paid", "42", "before")).await;
    stage.pass_ms(10);
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    for id in ["e1", "e2"] {
        stage.pass_ms(10);
        publish(&stage, event(&stage, "order.paid", "42", id)).await;
    }
    deliver(&stage).await;

    assert_eq!(took(&stage.ok(wait(&lease, "a", &paid("42"), None)).await), "e1", "in one commit");
    assert_eq!(took(&stage.ok(wait(&lease, "b", &paid("42"), Some(0))).await), "e2", "in their order");
    let none = stage.ok(wait(&lease, "c", &paid("42"), Some(0))).await;
    assert_eq!(none, Reply::Waited(Waited::Elapsed), "each once, and none from before it was created");
    let replayed = stage.ok(wait(&lease, "a", &paid("42"), None)).await;
    assert_eq!(took(&replayed), "e1", "asked again, the same is told");
    assert_eq!(heard(&stage, run).await, ["e1", "e2"]);
}

pub async fn an_event_is_kept_as_long_as_it_is_said_and_goes_then(stage: Stage) {
    let mut standing = stage.stand_by(2).await;
    stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.pass_ms(10);
    let short = PublishEvent { keep_ms: 1_000, ..event(&stage, "order.paid", "42", "short") };
    publish(&stage, short).await;
    deliver(&stage).await;

    stage.pass_ms(1_000);
    let late = stage.ok(wait(&lease, "a", &paid("42"), Some(0))).await;
    assert_eq!(late, Reply::Waited(Waited::Elapsed), "it has expired");
    deliver(&stage).await;
    let kept = stage.store.kept_events(&stage.namespace, None, Direction::Next, None, 10).await.unwrap();
    assert_eq!(kept, [], "and is deleted");
    assert!(!publish(&stage, event(&stage, "order.paid", "42", "short")).await.already, "its id is free");
}

/// An event that has expired before it was delivered still reaches whoever waited for it.
pub async fn an_event_that_nobody_delivered_in_time_still_reaches_who_waited(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    waits(&stage, &lease, "paid", "42").await;
    publish(&stage, PublishEvent { keep_ms: 0, ..event(&stage, "order.paid", "42", "e1") }).await;
    stage.pass_ms(60_000);

    deliver(&stage).await;

    assert_eq!(heard(&stage, run).await, ["e1"]);
}

pub async fn an_event_for_a_run_that_is_executed_is_hinted_and_taken_when_the_code_asks(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(wait(&lease, "paid", &paid("42"), None)).await;
    publish(&stage, event(&stage, "order.paid", "42", "e1")).await;
    deliver(&stage).await;

    let notice = stage.told.signalled(run).await;
    assert_eq!((notice.worker, notice.channel), (standing.worker, paid("42")));
    assert_eq!(took(&stage.ok(wait(&lease, "paid", &paid("42"), None)).await), "e1");
    deliver(&stage).await;
    assert_eq!(heard(&stage, run).await, ["e1"]);
}

pub async fn an_event_and_the_timeout_at_the_same_instant_have_one_winner(stage: Stage) {
    for is_first in [true, false] {
        let mut standing = stage.stand_by(1).await;
        let run = stage.start(&format!("order-{is_first}")).await;
        let lease = standing.next().await.lease();
        let key = format!("key-{is_first}");
        stage.ok(wait(&lease, "paid", &paid(&key), Some(1_000))).await;
        stage.ok(park(&lease, &["paid"])).await;
        stage.pass_ms(990);
        if is_first {
            publish(&stage, event(&stage, "order.paid", &key, "e1")).await;
            deliver(&stage).await;
        }
        stage.pass_ms(10);
        let lease = standing.next().await.lease();
        if !is_first {
            publish(&stage, event(&stage, "order.paid", &key, "e1")).await;
            deliver(&stage).await;
        }

        let told = stage.ok(wait(&lease, "paid", &paid(&key), Some(1_000))).await;
        match is_first {
            true => assert_eq!(took(&told), "e1"),
            false => assert_eq!(told, Reply::Waited(Waited::Elapsed)),
        }
        let expected: &[&str] = if is_first { &["e1"] } else { &[] };
        assert_eq!(heard(&stage, run).await, expected);
        stage.ok(stage.complete(&lease)).await;
    }
}

/// The loser of a race is dropped: it is not told of events any more, and what it was told of and the code
/// never heard lies there for the next wait.
pub async fn a_wait_that_the_code_dropped_hears_of_nothing_until_it_comes_by_again(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(wait(&lease, "paid", &paid("42"), None)).await;
    let nap = act::Sleep { step: crate::stage::step("nap"), duration_ms: 1_000, park: false };
    stage.ok(lease.report(nap)).await;
    stage.ok(park(&lease, &["nap"])).await;
    stage.pass_ms(10);
    publish(&stage, event(&stage, "order.paid", "42", "e1")).await;
    deliver(&stage).await;
    assert_eq!(heard(&stage, run).await, [""; 0], "nobody waits for it");

    stage.pass_ms(1_000);
    let lease = standing.next().await.lease();
    assert_eq!(took(&stage.ok(wait(&lease, "paid", &paid("42"), None)).await), "e1");
}

pub async fn a_run_that_has_ended_is_forgotten_and_one_that_goes_on_again_finds_what_is_kept(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    waits(&stage, &lease, "paid", "42").await;
    stage.ok(stage.cancel(run)).await;
    stage.pass_ms(10);
    publish(&stage, event(&stage, "order.paid", "42", "e1")).await;
    deliver(&stage).await;
    assert_eq!(heard(&stage, run).await, [""; 0]);

    let retry = act::Retry { from: None, request: None };
    stage.ok(RunKey::new(stage.namespace.clone(), run).order(Author::new("ada", ""), retry)).await;

    assert_eq!(heard(&stage, run).await, ["e1"], "its wait is open again");
}

/// Generations do not hear of an event twice, however many events came between.
pub async fn a_run_that_continues_hears_of_no_event_twice(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let mut lease = standing.next().await.lease();
    stage.pass_ms(10);
    for n in 0..4 {
        publish(&stage, event(&stage, "order.paid", "42", &format!("e{n}"))).await;
    }
    deliver(&stage).await;
    for n in 0..4 {
        let path = format!("paid#{n}");
        assert_eq!(took(&stage.ok(wait(&lease, &path, &paid("42"), Some(0))).await), format!("e{n}"));
        let input = Payload::new("next");
        stage.ok(lease.report(act::Continue { steps: vec![], input })).await;
        lease = standing.next().await.lease();
    }

    let none = stage.ok(wait(&lease, "paid", &paid("42"), Some(0))).await;
    assert_eq!(none, Reply::Waited(Waited::Elapsed));
    waits(&stage, &lease, "more", "42").await;
    publish(&stage, event(&stage, "order.paid", "42", "e4")).await;
    deliver(&stage).await;
    assert_eq!(heard(&stage, run).await.last().map(String::as_str), Some("e4"));
}

/// More than one turn delivers: each run once, and the events of a topic in their order.
pub async fn many_runs_hear_of_many_events_in_their_order_and_of_each_once(stage: Stage) {
    const RUNS: usize = 230;
    let mut standing = stage.stand_by(RUNS as u32).await;
    let mut runs = Vec::new();
    for n in 0..RUNS {
        let run = stage.start(&format!("order-{n}")).await;
        let lease = standing.next().await.lease();
        stage.ok(wait(&lease, "a", &paid("42"), None)).await;
        runs.push((run, lease));
    }
    stage.pass_ms(1);
    for id in ["e1", "e2"] {
        publish(&stage, event(&stage, "order.paid", "42", id)).await;
    }
    let first = stage.store.sweep(SweepKind::Events {}).await.unwrap();
    assert!(first.more, "not all at once: {first:?}");
    // A run that the first turn has not reached asks again: it must not miss the first event for the second.
    let (run, lease) = runs.last().unwrap();
    stage.ok(wait(lease, "b", &paid("42"), None)).await;
    assert_eq!(heard(&stage, *run).await, [""; 0]);
    deliver(&stage).await;

    for (run, _) in &runs {
        assert_eq!(heard(&stage, *run).await, ["e1", "e2"], "{run}");
    }
    assert_eq!(LaneStats::get(&stage.store.stats().events_delivered), 2 * RUNS as u64);
}

pub async fn two_waits_of_one_run_take_two_events(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    for path in ["a", "b"] {
        stage.ok(wait(&lease, path, &paid("42"), None)).await;
    }
    stage.ok(park(&lease, &["a", "b"])).await;
    for id in ["e1", "e2"] {
        publish(&stage, event(&stage, "order.paid", "42", id)).await;
    }
    deliver(&stage).await;

    let lease = standing.next().await.lease();
    assert_eq!(took(&stage.ok(wait(&lease, "a", &paid("42"), None)).await), "e1");
    assert_eq!(took(&stage.ok(wait(&lease, "b", &paid("42"), None)).await), "e2");
    assert_eq!(heard(&stage, run).await, ["e1", "e2"]);
}

pub async fn a_disabled_namespace_publishes_nothing_and_answers_repeats(stage: Stage) {
    publish(&stage, event(&stage, "order.paid", "42", "e1")).await;
    let (by, note) = ("ada".into(), "unpaid".into());
    stage.change(kagzi_model::NamespaceCommand::Disable { by, note }).await.unwrap();

    let refused = stage.store.ask(event(&stage, "order.paid", "42", "e2")).await.unwrap();
    let is_disabled = |refused: &PublishRejection| {
        matches!(refused, PublishRejection::NotAdmitted(Rejection::NamespaceDisabled { .. }))
    };
    assert!(refused.as_ref().is_err_and(is_disabled), "{refused:?}");
    assert!(publish(&stage, event(&stage, "order.paid", "42", "e1")).await.already);
}

pub async fn an_event_in_the_commit_of_the_wait_is_heard_once(stage: Stage) {
    for n in 0..8 {
        let mut standing = stage.stand_by(1).await;
        let run = stage.start(&format!("order-{n}")).await;
        let lease = standing.next().await.lease();
        let key = n.to_string();
        // Both are sent before either is answered: one batch, or two, in either order.
        let (waited, published) = tokio::join!(
            stage.store.apply(vec![wait(&lease, "paid", &paid(&key), None)]),
            stage.store.ask(event(&stage, "order.paid", &key, "e1")),
        );
        waited.unwrap().remove(0).unwrap();
        published.unwrap().unwrap();
        deliver(&stage).await;

        assert_eq!(took(&stage.ok(wait(&lease, "paid", &paid(&key), None)).await), "e1");
        assert_eq!(heard(&stage, run).await, ["e1"]);
        stage.ok(stage.complete(&lease)).await;
    }
}

pub async fn kept_events_are_listed_both_ways_and_by_topic(stage: Stage) {
    for (topic, key, id) in [("b", "1", "x"), ("a", "", "y"), ("b", "1", "z"), ("b", "", "w")] {
        publish(&stage, event(&stage, topic, key, id)).await;
    }
    let ids = async |topic: Option<&str>, direction, from: Option<kagzi_store::EventPlace>, limit| {
        let topic = topic.map(Name::from);
        let kept = stage.store.kept_events(&stage.namespace, topic.as_ref(), direction, from.as_ref(), limit);
        kept.await.unwrap().into_iter().map(|event| event.id.to_string()).collect::<Vec<_>>()
    };
    let all = stage.store.kept_events(&stage.namespace, None, Direction::Next, None, 9).await.unwrap();
    let place = |n: usize| kagzi_store::EventPlace {
        topic: all[n].key.topic.name.clone(),
        key: all[n].key.topic.key.clone(),
        at: all[n].at,
    };

    assert_eq!(ids(None, Direction::Next, None, 9).await, ["y", "w", "x", "z"]);
    assert_eq!(ids(None, Direction::Next, Some(place(0)), 2).await, ["w", "x"]);
    assert_eq!(ids(None, Direction::Prev, Some(place(3)), 2).await, ["x", "w"]);
    assert_eq!(ids(None, Direction::Prev, None, 1).await, ["z"]);
    assert_eq!(ids(Some("b"), Direction::Next, None, 9).await, ["w", "x", "z"]);
    assert_eq!(stage.store.count_kept_events(&stage.namespace, None).await.unwrap(), 4);
    assert_eq!(stage.store.count_kept_events(&stage.namespace, Some(&"b".into())).await.unwrap(), 3);
}

/// A wait with a command of its own that parks, as unary workers send it.
pub async fn a_unary_wait_is_answered_with_what_is_kept_or_parked(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.pass_ms(1);
    publish(&stage, event(&stage, "order.paid", "42", "e1")).await;
    deliver(&stage).await;
    let parking = |path: &str| -> Command {
        let (step, channel) = (crate::stage::step(path), paid("42"));
        let wait = act::AwaitSignal { step, channel, timeout_ms: None, last_call: false, park: true };
        lease.report(wait)
    };

    assert_eq!(took(&stage.ok(parking("a")).await), "e1");
    assert_eq!(stage.ok(parking("b")).await, Reply::Waited(Waited::Until(None)));
    publish(&stage, event(&stage, "order.paid", "42", "e2")).await;
    deliver(&stage).await;

    assert_eq!(standing.next().await.run.epoch, 2, "it goes on");
}
