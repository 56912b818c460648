//! An event is published at one server while the wait for it opens at another: it is heard, and once.

mod stage;

use std::time::Duration;

use kagzi_model::{
    Command, EventKind, LeaseRef, Payload, PublishEvent, Reply, RunId, StepRef, Topic, TopicKey, Waited, act,
};
use kagzi_store::SweepKind;
use kagzi_store_postgres::{PostgresOptions, fixture};
use stage::{Server, namespace, next};

const SOON: Duration = Duration::from_secs(20);
const ROUNDS: usize = 60;

fn topic(round: usize) -> Topic {
    Topic::new("order.paid", round.to_string())
}

fn wait(lease: &LeaseRef, round: usize) -> Command {
    let step = StepRef { path: "paid".into(), position: 0 };
    let (channel, timeout_ms) = (topic(round).channel(), None);
    lease.report(act::AwaitSignal { step, channel, timeout_ms, last_call: false, park: false })
}

fn event(round: usize) -> PublishEvent {
    let key = TopicKey { namespace: namespace(), topic: topic(round) };
    PublishEvent { key, id: "e1".into(), payload: Payload::new("1"), keep_ms: 60_000 }
}

async fn heard(server: &Server, run: RunId) -> usize {
    let events = server.store.events(&namespace(), run, 0, 1_000).await.unwrap();
    let is_event = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::SignalReceived { published: Some(_), .. }
                | EventKind::WaitEnded { published: Some(_), .. }
        )
    };
    events.iter().filter(|event| is_event(&event.kind)).count()
}

async fn deliver(server: &Server) {
    while server.store.sweep(SweepKind::Events {}).await.unwrap().more {}
}

#[tokio::test]
async fn an_event_published_while_the_wait_opens_on_another_server_is_heard_once() {
    let url = fixture::database().await;
    let options = PostgresOptions::default;
    let (here, there) = tokio::join!(Server::open(&url, options()), Server::open(&url, options()));
    let worker = there.register("charge", ROUNDS as u32).await;
    let mut assignments = there.stand_by(worker, "charge").await;
    let (mut at_once, mut delivered) = (0, 0);
    for round in 0..ROUNDS {
        let run = there.start("charge").await;
        let lease = next(&mut assignments, SOON).await.lease();

        // The event is delivered at once, by both servers, as their sweeps would.
        let publish = async {
            here.store.ask(event(round)).await.unwrap().unwrap();
            tokio::join!(deliver(&here), deliver(&there));
        };
        let (waited, ()) = tokio::join!(there.apply(wait(&lease, round)), publish);
        match waited.unwrap() {
            Reply::Waited(Waited::Taken { .. }) => at_once += 1,
            Reply::Waited(Waited::Until(None)) => delivered += 1,
            other => panic!("{other:?}"),
        }
        tokio::join!(deliver(&here), deliver(&there));

        let asked = there.apply(wait(&lease, round)).await.unwrap();
        assert!(matches!(asked, Reply::Waited(Waited::Taken { .. })), "round {round}: {asked:?}");
        assert_eq!(heard(&here, run).await, 1, "round {round}");
    }
    println!("{at_once} found it kept, {delivered} were told of it");
}

#[tokio::test]
async fn two_servers_that_deliver_at_the_same_time_tell_every_run_once() {
    let url = fixture::database().await;
    let options = PostgresOptions::default;
    let (here, there) = tokio::join!(Server::open(&url, options()), Server::open(&url, options()));
    let worker = there.register("charge", 250).await;
    let mut assignments = there.stand_by(worker, "charge").await;
    let mut runs = Vec::new();
    for _ in 0..250 {
        runs.push(there.start("charge").await);
        let lease = next(&mut assignments, SOON).await.lease();
        there.apply(wait(&lease, 0)).await.unwrap();
    }
    here.store.ask(event(0)).await.unwrap().unwrap();

    tokio::join!(deliver(&here), deliver(&there));
    tokio::join!(deliver(&here), deliver(&there));

    for run in runs {
        assert_eq!(heard(&here, run).await, 1, "{run}");
    }
}
