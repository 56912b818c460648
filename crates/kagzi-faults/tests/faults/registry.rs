//! Worker identity: containers all have pid 1, and one process may hold several workers.

use std::collections::{HashMap, HashSet};

use kagzi_faults::{HandStream, Pace, QUEUE, Script, eventually, hello, stage, start_request};
use kagzi_proto::v1::{self, WorkerStatus};
use tonic::Code;

#[tokio::test]
async fn two_workers_in_one_process_both_register_and_keep_their_labels() {
    let stage = stage!(Pace::Steady);
    let labels = ["--label", "zone=eu-1", "--label", "container=é 7f"];
    let args = [&["--workers", "2", "--hostname", "box"][..], &labels].concat();
    let worker = stage.worker(&args).await;

    let rows = eventually("both are registered", async || {
        Some(stage.workers_of(worker.pid()).await).filter(|rows| rows.len() == 2)
    })
    .await;

    assert_ne!(rows[0].worker_id, rows[1].worker_id);
    let expected = HashMap::from([("zone", "eu-1"), ("container", "é 7f")]);
    let expected: HashMap<_, _> = expected.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    for row in &rows {
        assert_eq!((row.status(), row.hostname.as_str()), (WorkerStatus::Online, "box"));
        assert_eq!((&row.labels, row.version.as_str()), (&expected, "fault-test"));
    }
    worker.terminate();
    let mut worker = worker;
    assert_eq!(worker.ended().await.code(), Some(0));
    let rows = stage.workers_of(worker.pid()).await;
    assert!(rows.iter().all(|row| row.status() == WorkerStatus::Offline && row.labels == expected));
    stage.close().await;
}

#[tokio::test]
async fn containers_with_the_same_hostname_and_pid_are_different_workers() {
    let stage = stage!(Pace::Steady);
    let workers = [stage.hand_worker("by-hand").await, stage.hand_worker("by-hand").await];
    let mut runs = HashSet::new();
    for _ in 0..2 {
        runs.insert(stage.start_with(start_request("by-hand", &Script::default())).await.unwrap().run_id);
    }

    let held = [workers[0].poll(5_000).await.expect("a run"), workers[1].poll(5_000).await.expect("a run")];
    let leases = [stage.run(&held[0].run_id).await.locked_by, stage.run(&held[1].run_id).await.locked_by];

    assert_ne!(workers[0].id, workers[1].id);
    assert_eq!(leases, [workers[0].id.clone(), workers[1].id.clone()]);
    assert_eq!(HashSet::from([held[0].run_id.clone(), held[1].run_id.clone()]), runs);
    // One of them being silent about the other's run does not take it away.
    workers[0].beat(&[&held[0]]).await.unwrap();
    workers[1].beat(&[&held[1]]).await.unwrap();
    workers[0].complete(&held[0], "1").await.unwrap();
    workers[1].complete(&held[1], "2").await.unwrap();
    stage.close().await;
}

#[tokio::test]
async fn a_stream_that_greets_with_another_namespaces_worker_id_is_refused_and_changes_nothing() {
    let stage = stage!(Pace::Steady);
    let mut owner = HandStream::open(stage.registry(), hello("by-hand", 10)).await.unwrap();
    let worker = owner.welcome.worker_id.clone();
    let get = || v1::GetWorkerRequest { worker_id: worker.clone(), ..Default::default() };
    let before = stage.registry().get_worker(get()).await.unwrap().into_inner().worker;

    let mut stranger = hello("by-hand", 10);
    stranger.worker_id = worker.clone();
    for (namespace, queue) in [("tenant-b", QUEUE), ("", "another-queue")] {
        let registration = stranger.registration.as_mut().unwrap();
        (registration.namespace_id, registration.task_queue) = (namespace.into(), queue.into());
        let refused = HandStream::open(stage.registry(), stranger.clone()).await.err().expect("a refusal");
        assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
        assert!(refused.message().contains(&worker), "{refused}");
    }

    let after = stage.registry().get_worker(get()).await.unwrap().into_inner().worker;
    assert_eq!(after, before);
    let run = stage.start_with(start_request("by-hand", &Script::default())).await.unwrap().run_id;
    let assigned = owner.assigned().await.expect("the owner's stream goes on");
    assert_eq!(assigned.lease.unwrap().run_id, run);
    stage.close().await;
}
