use kagzi_proto::v1::{self, report, server_message, worker_message};

use crate::register_all;
use crate::scripted_server::{ScriptedServer, ended};

#[tokio::test(start_paused = true)]
async fn a_draining_worker_finishes_what_it_has_and_says_goodbye() {
    let mut server = ScriptedServer::start();
    let mut worker = server.worker().await;
    register_all(&mut worker);
    let shutdown = worker.shutdown_token();
    let worker = tokio::spawn(worker.run());
    let (mut stream, _) = server.welcome().await;
    stream.assign("r1", "one_step").await;
    let (_, step, _) = stream.next_report().await;

    shutdown.cancel();
    stream.expect_drain_notice().await;
    assert_eq!(stream.next_heartbeat().await, ["r1"], "a draining worker keeps its leases");
    stream.assign("r2", "one_step").await;
    let (run, refused, body) = stream.next_report().await;
    assert_eq!(run, "r2");
    assert!(matches!(body, report::Body::RunReleased(_)), "took a run while draining: {body:?}");
    stream.commit(refused).await;
    stream.commit(step).await;
    let (_, end, body) = stream.next_report().await;
    assert!(matches!(body, report::Body::RunCompleted(_)), "{body:?}");
    stream.commit(end).await;
    stream.expect_goodbye().await;

    ended(worker).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_outlasts_the_drain_is_given_back() {
    let mut server = ScriptedServer::start();
    let mut worker = server.worker().await;
    register_all(&mut worker);
    let worker = tokio::spawn(worker.run());
    let (mut stream, _) = server.welcome().await;
    stream.assign("r1", "endless").await;
    let began = tokio::time::Instant::now();

    stream.send(server_message::Message::Drain(v1::DrainOrder { reason: "deployment".into() })).await;
    stream.expect_drain_notice().await;
    let (run, seq, body) = stream.next_report().await;

    assert!(began.elapsed().as_secs() >= 60, "given back after {:?}", began.elapsed());
    assert_eq!(run, "r1");
    let report::Body::RunReleased(released) = body else { panic!("not released: {body:?}") };
    assert_eq!(released.reason, "the worker was drained");
    stream.commit(seq).await;
    stream.expect_goodbye().await;
    ended(worker).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_ends_before_its_welcome_came_says_goodbye_too() {
    let mut server = ScriptedServer::start();
    let mut worker = server.worker().await;
    register_all(&mut worker);
    let shutdown = worker.shutdown_token();
    let worker = tokio::spawn(worker.run());
    let mut stream = server.next_stream().await;
    let hello = stream.next().await;
    assert!(matches!(hello, worker_message::Message::Hello(_)), "{hello:?}");

    shutdown.cancel();

    stream.expect_goodbye().await;
    ended(worker).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_idle_worker_without_a_server_drains_at_once() {
    let server = ScriptedServer::start();
    let mut worker = server.worker().await;
    register_all(&mut worker);
    let shutdown = worker.shutdown_token();
    drop(server);
    let worker = tokio::spawn(worker.run());

    shutdown.cancel();

    ended(worker).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_the_last_reports_does_not_hold_the_worker() {
    let mut server = ScriptedServer::start();
    let mut worker = server.worker().await;
    register_all(&mut worker);
    let shutdown = worker.shutdown_token();
    let worker = tokio::spawn(worker.run());
    let (stream, _) = server.welcome().await;
    stream.assign("r1", "endless").await;

    shutdown.cancel();

    ended(worker).await.unwrap();
}
