//! The database stalls under a worker that goes on talking: what it says is not held in memory meanwhile.

use std::time::{Duration, Instant};

use kagzi_faults::{HandStream, Pace, Script, hello, stage, start_request};
use kagzi_proto::v1::{self, report::Body, server_message::Message as Down, worker_message::Message as Up};
use kagzi_store_postgres::fixture;
use tokio_postgres::NoTls;

use crate::turn;

const TYPE: &str = "by-hand";

fn megabyte() -> Option<v1::Payload> {
    Some(v1::Payload { data: vec![b'7'; 1_000_000].into(), ..Default::default() })
}

fn report(seq: u64, lease: &v1::LeaseRef, body: Body) -> Up {
    Up::Report(v1::Report { seq, lease: Some(lease.clone()), body: Some(body) })
}

/// The numbers that a message answers.
fn answered(message: Down) -> Vec<u64> {
    match message {
        Down::Ack(ack) => ack.committed.into_iter().chain(ack.answers.iter().map(|it| it.seq)).collect(),
        other => panic!("not an acknowledgement: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_that_a_stalled_store_does_not_take_are_not_held_for_it() {
    const REPORTS: u64 = 400;
    const STALL: Duration = Duration::from_secs(3);
    let _turn = turn().await;
    let url = fixture::database().await;
    let stage = stage!(Pace::Calm, url.clone());
    let mut stream = HandStream::open(stage.registry(), hello(TYPE, 1)).await.unwrap();
    let run = stage.start_with(start_request(TYPE, &Script::default())).await.unwrap().run_id;
    let lease = stream.assigned().await.unwrap().lease.unwrap();
    assert_eq!(lease.run_id, run);
    let before_kib = stage.server_memory_kib("VmRSS");

    // Somebody else has locked the table: the first report is committed once they are done, and not before.
    // The others are of a lease that there never was, which costs its sender nothing.
    let (db, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    let driving = tokio::spawn(connection);
    db.batch_execute("BEGIN; LOCK kagzi.runs IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let progressed = |progress| {
        let step = Some(v1::StepRef { path: "charge".into(), ..Default::default() });
        Body::StepProgressed(v1::StepProgressed { step, progress })
    };
    stream.say(report(1, &lease, progressed(None))).await;
    let invented = v1::LeaseRef { run_id: "0197aaaa-0000-7000-8000-000000000001".into(), epoch: 1 };
    let (payload, since) = (megabyte(), Instant::now());
    let mut said = 1;
    let flood = async {
        while said < REPORTS {
            stream.say(report(said + 1, &invented, progressed(payload.clone()))).await;
            said += 1;
        }
    };
    let heard_all = tokio::time::timeout(STALL, flood).await.is_ok();
    let grown_mib = stage.server_memory_kib("VmRSS").saturating_sub(before_kib) / 1024;
    println!("after {:?} {said} of {REPORTS} reports were said, grown by {grown_mib} MiB", since.elapsed());
    assert!(!heard_all, "a worker is not heard while the store stalls");
    assert!(grown_mib < 100, "{grown_mib} MiB are held for a store that stalls");

    // When the store goes on, so does the worker: everything is answered.
    db.batch_execute("ROLLBACK").await.unwrap();
    driving.abort();
    while said < REPORTS {
        assert!(stream.say(report(said + 1, &invented, progressed(payload.clone()))).await);
        said += 1;
    }
    let mut answers = Vec::new();
    while answers.len() < REPORTS as usize {
        answers.extend(answered(stream.next().await.expect("the stream goes on")));
    }
    answers.sort_unstable();
    assert!(answers.into_iter().eq(1..=REPORTS), "each is answered once");
    stage.close_on(&url).await;
}
