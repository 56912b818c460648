//! fsync before every acknowledgement, as the kernel saw it: the server runs under `strace`.

use std::collections::HashSet;

use futures_util::future::join_all;
use kagzi::Client;
use kagzi_faults::{
    Evidence, Pace, QUEUE, Script, StepResult, start_request, traced_stage,
    witness::{self, Answer, Kind, SystemCall},
};
use uuid::Uuid;

/// Runs that are started and awaited one after the other, and by how many clients at once.
const ALONE: usize = 12;
const AT_ONCE: usize = 40;

#[tokio::test]
async fn no_answer_leaves_the_server_before_the_sync_of_its_commit_has_returned() {
    let stage = traced_stage!(Pace::Calm);
    let _worker = stage.worker(&[]).await;
    for _ in 0..ALONE {
        let run = stage.start(&marked_script()).await;
        stage.completed(&run).await;
    }
    let client = Client::connect(stage.address.to_string()).await.unwrap();
    let together = join_all((0..AT_ONCE).map(async |_| {
        let run = client.workflow("script", QUEUE, marked_script()).await?;
        run.result::<Vec<StepResult>>().await
    }))
    .await;
    let by_hand = stage.hand_worker("by-hand").await;
    stage.start_with(start_request("by-hand", &marked_script())).await.unwrap();
    let held = by_hand.poll(30_000).await.expect("a run");
    by_hand.complete_step(&held, "charge", &mark()).await.unwrap();
    by_hand.complete(&held, &mark()).await.unwrap();

    let calls = witness::read(&stage.transcript().await);
    let answers = witness::answers(&calls);
    let synced = witness::testify(&calls, &answers).unwrap();

    assert!(together.iter().all(Result::is_ok), "{together:?}");
    // Nothing escaped the witness. By hand: a start, a step and an end. By the worker, of each run: the name
    // of the first step, which came with the input, and two results. All of it was handed out again, but for
    // what was done by hand.
    let marks = |kind: Kind| {
        let of_kind = answers.iter().filter(|answer| answer.kind == kind);
        of_kind.flat_map(|answer| &answer.marks).collect::<HashSet<_>>().len()
    };
    assert_eq!((marks(Kind::Call), marks(Kind::Start)), (ALONE + 3, AT_ONCE));
    assert_eq!(marks(Kind::Report), 3 * (ALONE + AT_ONCE));
    assert_eq!(marks(Kind::Payload), 3 * (ALONE + AT_ONCE) + 1);
    // One after the other nobody shares: a sync for every call.
    let calls_synced = synced.iter().filter(|synced| synced.kind == Kind::Call).map(|synced| synced.sync);
    assert_eq!(calls_synced.collect::<HashSet<_>>().len(), ALONE + 3);
    let runs = ALONE + AT_ONCE + 1;
    // What was done by hand has no execution that it could be compared with.
    let steps = 2 * (ALONE + AT_ONCE);
    let expected = Evidence { runs, completed: runs, results: steps, executions: steps };
    assert_eq!(stage.close().await, expected);
}

#[test]
fn the_witness_accepts_a_sync_of_the_same_log_between_write_and_answer_and_nothing_else() {
    let mark = Uuid::new_v4();
    let call = |name: &str, file: &str, thread, lines: (usize, usize)| {
        let (name, file) = (name.to_owned(), file.to_owned());
        SystemCall { thread, name, file, data: mark.to_string().into(), began: lines.0, ended: lines.1 }
    };
    let write = call("pwrite64", "kagzi.db-wal", 7, (10, 11));
    let answers = [Answer { kind: Kind::Call, marks: vec![mark], began: 20 }];
    let judge = |sync: SystemCall| witness::testify(&[write.clone(), sync], &answers);

    assert!(judge(call("fdatasync", "kagzi.db-wal", 7, (12, 19))).is_ok());
    assert!(judge(call("fdatasync", "kagzi.db-wal", 7, (12, 21))).is_err(), "it ended after the answer");
    assert!(judge(call("fdatasync", "kagzi.db", 7, (12, 19))).is_err(), "another file");
    assert!(judge(call("fdatasync", "kagzi.db-wal", 8, (12, 19))).is_err(), "perhaps of half a commit");
    assert!(judge(call("pwrite64", "kagzi.db-wal", 7, (12, 19))).is_err(), "no sync at all");
    assert!(witness::testify(&[], &answers).is_err(), "nothing was written");
}

/// Two steps; the first has a name of its own.
fn marked_script() -> Script {
    Script::steps(&[&mark(), "ship"])
}

fn mark() -> String {
    format!("ack-{}", Uuid::new_v4())
}
