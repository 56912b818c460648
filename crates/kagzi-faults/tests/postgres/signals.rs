//! A signal that comes at any instant, at any server: of the timeout of its wait, of the park, of the end, of
//! another worker's takeover. Its sender is told one outcome, and it is true.

use std::time::Duration;

use futures_util::future::join_all;
use kagzi_faults::{Move, Pace, Script, Stage, stage};
use kagzi_proto::v1::{self, EventKind, run_ref::Ref};
use kagzi_store_postgres::fixture;
use tonic::Code;

use crate::{addresses, turn};

const RUNS: usize = 120;
const WITHIN_MS: u64 = 400;

/// When a signal is sent.
enum Moment {
    After(Duration),
    /// As soon as somebody can know that the run has ended.
    AtTheEnd,
}

/// True when its sender was told that it is kept, false when he was told that the run has ended.
async fn tell(stage: &Stage, run: &str, moment: Moment) -> bool {
    match moment {
        Moment::After(after) => tokio::time::sleep(after).await,
        Moment::AtTheEnd => drop(stage.finished(run).await),
    }
    let request = v1::SignalWorkflowRunRequest {
        run: Some(v1::RunRef { r#ref: Some(Ref::RunId(run.to_owned())) }),
        channel: "item".into(),
        signal_id: "tea".into(),
        payload: Some(v1::Payload { data: "\"tea\"".into(), ..Default::default() }),
        ..Default::default()
    };
    match stage.workflows().signal_workflow_run(request).await {
        Ok(answer) => {
            assert!(!answer.into_inner().already_delivered, "it was sent once");
            true
        }
        Err(refused) => {
            assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
            false
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_at_any_instant_has_one_outcome_which_its_sender_is_told() {
    let _turn = turn().await;
    let url = fixture::database().await;
    let one = stage!(Pace::Brisk, url.clone());
    let two = one.sibling().await;
    let mut workers = Vec::new();
    for order in [[&one, &two], [&two, &one]] {
        workers.push(one.worker_at(addresses(order[0], order[1]), &[]).await);
    }
    let wait = Move::SignalWithin { channel: "item".into(), ms: WITHIN_MS };
    let script = Script::default().then(wait).step("ship");
    let started = join_all((0..RUNS).map(|_| one.start(&script))).await;

    // Spread from before the first park over the timeouts and a lost worker to behind the last end.
    let moment = |n: usize| match n % 4 {
        0 => Moment::AtTheEnd,
        1 => Moment::After(Duration::ZERO),
        _ => Moment::After(Duration::from_millis(WITHIN_MS * 2 * n as u64 / RUNS as u64)),
    };
    let sent = join_all((0..RUNS).map(|n| tell([&one, &two][n % 2], &started[n], moment(n))));
    let (told, ()) = tokio::join!(sent, async {
        tokio::time::sleep(Duration::from_millis(WITHIN_MS)).await;
        workers.remove(0).kill().await;
    });

    let (mut taken, mut late, mut refused) = (0, 0, 0);
    for (run, told) in started.iter().zip(told) {
        let heard = one.heard(run).await;
        let history = one.whole_history(run).await;
        let count = |kind| history.iter().filter(|event| event.kind() == kind).count();
        let (came, took) = (count(EventKind::SignalReceived), count(EventKind::WaitEnded));
        match (told, &*heard[0]) {
            (true, "tea") => {
                assert_eq!(took, 1, "{run}: taken once");
                taken += 1;
            }
            (true, "nothing") => {
                assert_eq!((came, took), (1, 0), "{run}: it came too late, and lies there");
                late += 1;
            }
            (false, "nothing") => {
                assert_eq!((came, took), (0, 0), "{run}: refused, and nothing of it is there");
                refused += 1;
            }
            other => panic!("{run}: {other:?}"),
        }
    }
    println!("{taken} signals were taken, {late} came too late, {refused} were refused");
    assert!(taken > 0 && refused > 0, "{taken} taken, {late} late, {refused} refused");
    two.kill_server().await;
    let found = one.close().await;
    assert_eq!((found.runs, found.completed), (RUNS, RUNS));
}
