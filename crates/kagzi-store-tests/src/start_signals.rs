//! A start that tells its run something: both in one commit, and the run that is there is told.

use futures_util::future::join_all;
use kagzi_model::{
    Command, EventKind, IdReuse, Name, Payload, Rejection, Reply, RunId, RunOptions, StartRun, Started, act,
    limits::UNREAD_MAX,
};

use crate::{
    Stage,
    replay_law::park,
    signals::{signal, wait},
};

fn told(channel: &str, id: &str) -> act::Signal {
    let payload = Payload::new(id.as_bytes().to_vec());
    act::Signal { channel: channel.into(), id: id.into(), payload, failure: None }
}

fn start_telling(stage: &Stage, business_id: &str, signals: Vec<act::Signal>) -> StartRun {
    StartRun { signals, ..stage.new_run(business_id) }
}

fn existed(run: RunId) -> Reply {
    Reply::Started(Started { run, existed: true })
}

/// What the run was told so far, in order: taken by a wait or not.
async fn heard(stage: &Stage, run: RunId) -> Vec<String> {
    let id = |kind: &EventKind| match kind {
        EventKind::SignalReceived { id, .. } | EventKind::WaitEnded { id, received: None, .. } => {
            Some(id.to_string())
        }
        _ => None,
    };
    stage.events(run).await.iter().filter_map(|event| id(&event.kind)).collect()
}

pub async fn a_new_run_is_told_in_the_commit_of_its_start(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let twice = vec![told("item", "tea"), told("item", "milk"), told("item", "tea")];

    let run = stage.start_with(start_telling(&stage, "cart-1", twice)).await;

    let names = stage.event_names(run).await;
    assert_eq!(names, ["run_started", "signal_received", "signal_received", "run_claimed"]);
    let lease = standing.next().await.lease();
    for n in 0..2 {
        stage.ok(wait(&lease, &format!("item#{n}"), "item", None)).await;
    }
    assert_eq!(heard(&stage, run).await, ["tea", "milk"]);
    let input = stage.store.run(&stage.namespace, run).await.unwrap().unwrap().input;
    assert_eq!(
        input.map(|input| input.data),
        Some("input of cart-1".into()),
        "the input is the first event's"
    );
}

pub async fn a_run_that_is_there_is_told_and_goes_on_in_one_commit_whatever_its_input(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("cart-1").await;
    let lease = standing.next().await.lease();
    stage.ok(wait(&lease, "item", "item", None)).await;
    stage.ok(park(&lease, &["item"])).await;
    let mut again = start_telling(&stage, "cart-1", vec![told("item", "tea"), told("item", "milk")]);
    again.input = Payload::new(&b"something else"[..]);

    assert_eq!(stage.ok(Command::start(again)).await, existed(run));

    assert_eq!(standing.next().await.run.epoch, 2, "leased again by the time the sender is told");
    assert_eq!(heard(&stage, run).await, ["tea", "milk"]);
}

pub async fn a_hundred_starts_with_a_signal_make_one_run_that_is_told_a_hundred_times(stage: Stage) {
    let ids: Vec<String> = (0..100).map(|n| format!("item-{n}")).collect();
    let starts = ids.iter().map(|id| {
        let start = start_telling(&stage, "cart-1", vec![told("item", id)]);
        stage.apply(Command::start(start))
    });

    let replies = join_all(starts).await;

    let started: Vec<Started> = replies
        .into_iter()
        .map(|reply| match reply {
            Ok(Reply::Started(started)) => started,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(started.iter().filter(|started| !started.existed).count(), 1);
    assert!(started.iter().all(|other| other.run == started[0].run), "{started:?}");
    let mut heard = heard(&stage, started[0].run).await;
    heard.sort_by_key(|id| ids.iter().position(|known| known == id));
    assert_eq!(heard, ids);
}

pub async fn the_same_start_again_tells_nothing_twice(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let start = start_telling(&stage, "cart-1", vec![told("item", "tea")]);
    let run = stage.start_with(start.clone()).await;
    let again = || Command::start(StartRun { id: stage.new_run("cart-1").id, ..start.clone() });

    assert_eq!(stage.ok(again()).await, existed(run), "its answer was lost");
    let lease = standing.next().await.lease();
    stage.ok(wait(&lease, "item", "item", None)).await;
    assert_eq!(stage.ok(again()).await, existed(run), "it was taken meanwhile");
    stage.ok(stage.complete(&lease)).await;
    assert_eq!(stage.ok(again()).await, existed(run), "the run has ended meanwhile");

    assert_eq!(heard(&stage, run).await, ["tea"]);
}

pub async fn where_one_signal_is_refused_none_is_told(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("cart-1").await;
    let lease = standing.next().await.lease();
    let (step, channel) = (crate::stage::step("closed"), Name::from("closed"));
    let (timeout_ms, last_call, park) = (None, true, false);
    stage.ok(lease.report(act::AwaitSignal { step, channel, timeout_ms, last_call, park })).await;

    let closed = start_telling(&stage, "cart-1", vec![told("item", "tea"), told("closed", "late")]);
    let refused = stage.apply(Command::start(closed)).await;
    assert!(matches!(refused, Err(Rejection::ChannelClosed { .. })), "{refused:?}");
    assert_eq!(heard(&stage, run).await, Vec::<String>::new());

    let ids: Vec<String> = (0..UNREAD_MAX - 1).map(|n| format!("s-{n}")).collect();
    stage.apply_all(ids.iter().map(|id| signal(&stage, run, "item", id)).collect()).await;
    let two = start_telling(&stage, "cart-1", vec![told("item", "tea"), told("item", "milk")]);
    let refused = stage.apply(Command::start(two)).await;
    assert!(matches!(refused, Err(Rejection::TooManySignals { .. })), "{refused:?}");
    assert_eq!(heard(&stage, run).await, ids);
}

pub async fn an_ended_run_refuses_unless_a_new_one_may_take_its_id(stage: Stage) {
    let run = stage.start("cart-1").await;
    stage.ok(stage.cancel(run)).await;

    let late = start_telling(&stage, "cart-1", vec![told("item", "tea")]);
    let refused = stage.apply(Command::start(late.clone())).await;
    assert!(matches!(refused, Err(Rejection::Ended { .. })), "{refused:?}");

    let options = RunOptions { reuse: IdReuse::AfterEnd, ..RunOptions::default() };
    let heir = stage.start_with(StartRun { options, ..late }).await;
    assert_eq!(heard(&stage, heir).await, ["tea"]);
    assert_eq!(heard(&stage, run).await, Vec::<String>::new());
}

pub async fn a_start_that_conflicts_tells_nothing(stage: Stage) {
    let run = stage.start("cart-1").await;
    let mut other = start_telling(&stage, "cart-1", vec![told("item", "tea")]);
    other.workflow_type = "refund".into();

    let refused = stage.apply(Command::start(other)).await;

    assert!(matches!(refused, Err(Rejection::Conflict { what: "workflow type", .. })), "{refused:?}");
    let mut rejecting = start_telling(&stage, "cart-1", vec![told("item", "tea")]);
    rejecting.options.reuse = IdReuse::Reject;
    let refused = stage.apply(Command::start(rejecting)).await;
    assert!(matches!(refused, Err(Rejection::Taken { .. })), "{refused:?}");
    assert_eq!(heard(&stage, run).await, Vec::<String>::new());
}
