//! A signal is sent at one server while the run's worker stands by at another: the run goes on at once.

mod stage;

use std::{sync::Arc, time::Duration};

use kagzi_model::{Author, Command, LeaseRef, Payload, Reply, RunId, RunKey, StepRef, Waited, WorkerId, act};
use kagzi_store::{Finished, LostLease, Observer, SignalNotice};
use kagzi_store_postgres::{PostgresOptions, fixture};
use stage::{Server, namespace, next};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const SOON: Duration = Duration::from_secs(20);

/// Servers that look by themselves only once an hour: whatever comes sooner came by a hint.
fn hints_only() -> PostgresOptions {
    PostgresOptions { poll_ms: Some(3_600_000), ..PostgresOptions::default() }
}

struct Heard(UnboundedSender<SignalNotice>);

impl Observer for Heard {
    fn finished(&self, _: Finished) {}

    fn lease_lost(&self, _: LostLease) {}

    fn signalled(&self, notice: SignalNotice) {
        // The test may be over.
        let _ = self.0.send(notice);
    }
}

/// A server without workers, one with a worker that executes a run whose wait is open, and what it hears.
async fn with_a_worker_elsewhere() -> (Server, Server, WorkerId, LeaseRef, UnboundedReceiver<SignalNotice>) {
    let url = fixture::database().await;
    let (tell, heard) = unbounded_channel();
    let here = Server::open(&url, hints_only()).await;
    let there = Server::observed(&url, hints_only(), Arc::new(Heard(tell))).await;
    let worker = there.register("charge", 1).await;
    let mut assignments = there.stand_by(worker, "charge").await;
    there.start("charge").await;
    let lease = next(&mut assignments, SOON).await.lease();
    there.apply(wait(&lease)).await.unwrap();
    (here, there, worker, lease, heard)
}

fn signal(run: RunId) -> Command {
    signal_saying(run, b"1")
}

fn signal_saying(run: RunId, words: &[u8]) -> Command {
    let signal = act::Signal {
        channel: "approved".into(),
        id: "ada".into(),
        payload: Payload::new(words.to_vec()),
        failure: None,
    };
    RunKey::new(namespace(), run).order(Author::new("tester", ""), signal)
}

fn wait(lease: &LeaseRef) -> Command {
    let step = StepRef { path: "ok".into(), position: 0 };
    let (channel, timeout_ms) = ("approved".into(), None);
    lease.report(act::AwaitSignal { step, channel, timeout_ms, last_call: false, park: false })
}

fn park(lease: &LeaseRef) -> Command {
    lease.report(act::Park { waits: vec!["ok".into()], wake: Default::default() })
}

#[tokio::test]
async fn the_worker_of_another_server_hears_of_a_signal_for_the_run_that_it_executes() {
    let (here, there, worker, lease, mut heard) = with_a_worker_elsewhere().await;

    here.apply(signal(lease.run)).await.unwrap();

    let notice = tokio::time::timeout(SOON, heard.recv()).await.expect("a hint comes").unwrap();
    assert_eq!((notice.worker, notice.run, notice.epoch), (worker, lease.run, lease.epoch));
    let asked = there.apply(wait(&lease)).await.unwrap();
    assert!(matches!(asked, Reply::Waited(Waited::Taken { .. })), "{asked:?}");
}

#[tokio::test]
async fn a_parked_run_goes_on_at_the_server_where_its_worker_stands_by() {
    let url = fixture::database().await;
    let (here, there) = tokio::join!(Server::open(&url, hints_only()), Server::open(&url, hints_only()));
    let worker = there.register("charge", 1).await;
    let mut assignments = there.stand_by(worker, "charge").await;
    let run = there.start("charge").await;
    let lease = next(&mut assignments, SOON).await.lease();
    there.apply(wait(&lease)).await.unwrap();
    there.apply(park(&lease)).await.unwrap();

    here.apply(signal(run)).await.unwrap();

    let assignment = next(&mut assignments, SOON).await;
    assert_eq!((assignment.run.id, assignment.run.epoch), (run, lease.epoch + 1));
}

#[tokio::test]
async fn a_signal_whose_hint_was_lost_is_heard_at_the_next_park() {
    let url = fixture::database().await;
    let deaf = || PostgresOptions { notify: false, ..hints_only() };
    let (tell, mut heard) = unbounded_channel();
    let here = Server::open(&url, deaf()).await;
    let there = Server::observed(&url, deaf(), Arc::new(Heard(tell))).await;
    let worker = there.register("charge", 1).await;
    let mut assignments = there.stand_by(worker, "charge").await;
    let run = there.start("charge").await;
    let lease = next(&mut assignments, SOON).await.lease();
    there.apply(wait(&lease)).await.unwrap();

    here.apply(signal(run)).await.unwrap();
    there.apply(park(&lease)).await.unwrap();

    // It goes on in the commit of the park, and never slept.
    let assignment = next(&mut assignments, SOON).await;
    assert_eq!((assignment.run.id, assignment.run.epoch), (run, lease.epoch + 1));
    let asked = there.apply(wait(&assignment.lease())).await.unwrap();
    assert!(matches!(asked, Reply::Waited(Waited::Taken { .. })), "{asked:?}");
    assert!(heard.try_recv().is_err(), "nobody gave a hint");
}

#[tokio::test]
async fn a_signal_that_is_sent_again_at_another_server_counts_once_whatever_it_says() {
    let (here, there, _, lease, _heard) = with_a_worker_elsewhere().await;

    let first = here.apply(signal(lease.run)).await.unwrap();
    let again = there.apply(signal_saying(lease.run, b"2")).await.unwrap();
    let taken = there.apply(wait(&lease)).await.unwrap();
    let late = here.apply(signal_saying(lease.run, b"3")).await.unwrap();

    let told = |already| Reply::Signalled(kagzi_model::Signalled { already });
    assert_eq!((first, again, late), (told(false), told(true), told(true)));
    let Reply::Waited(Waited::Taken { seq, .. }) = taken else { panic!("{taken:?}") };
    let payloads = there.store.payloads(&namespace(), lease.run, &[seq]).await.unwrap();
    assert_eq!(payloads.len(), 1);
    assert_eq!(payloads[0].1.data, "1", "what was said first");
}
