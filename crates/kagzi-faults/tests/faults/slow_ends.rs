//! A worker whose line is slow: what is on its way to it takes longer than a silent worker is believed in.

use std::time::{Duration, Instant};

use kagzi_faults::{HandStream, Pace, Script, eventually, hello, stage, start_request};
use kagzi_proto::v1::{self, report::Body, server_message::Message as Down, worker_message::Message as Up};

const TYPE: &str = "by-hand";

fn megabyte() -> Option<v1::Payload> {
    Some(v1::Payload { data: vec![b'7'; 1_000_000].into(), ..Default::default() })
}

fn beat(runs: &[v1::LeaseRef]) -> Up {
    Up::Heartbeat(v1::Heartbeat { runs: runs.to_vec() })
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

#[tokio::test]
async fn a_worker_that_reads_slowly_and_beats_keeps_all_its_runs() {
    const RUNS: usize = 40;
    const PER_RUN: Duration = Duration::from_millis(200);
    let stage = stage!(Pace::Brisk);
    let mut request = start_request(TYPE, &Script::default());
    request.input = megabyte();
    for _ in 0..RUNS {
        stage.start_with(request.clone()).await.unwrap();
    }

    // All are leased to it at once, and it reads one after the other, for longer than a lease lasts. It says
    // all the time that it lives.
    let mut slow = HandStream::open(stage.registry(), hello(TYPE, 1_000)).await.unwrap();
    let (began, mut held) = (Instant::now(), Vec::new());
    while held.len() < RUNS {
        let since = Instant::now();
        eventually("its line takes a while", async || {
            assert!(slow.say(beat(&held)).await, "the stream goes on");
            (since.elapsed() > PER_RUN).then_some(())
        })
        .await;
        match slow.next().await.expect("the stream goes on") {
            Down::Assign(assign) => held.push(assign.lease.unwrap()),
            other => panic!("besides its runs it is told {other:?}"),
        }
    }
    assert!(began.elapsed() > stage.pace.lease() * 3 / 2, "{:?}", began.elapsed());
    assert!(held.iter().all(|lease| lease.epoch == 1), "nobody else had any of them: {held:?}");
    for (seq, lease) in (1..).zip(&held) {
        slow.say(report(seq, lease, Body::RunCompleted(v1::RunCompleted::default()))).await;
    }
    let mut done = Vec::new();
    while done.len() < RUNS {
        done.extend(answered(slow.next().await.expect("the stream goes on")));
    }
    assert_eq!(stage.close().await.completed, RUNS);
}
