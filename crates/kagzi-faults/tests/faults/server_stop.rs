//! SIGTERM of the server, and two servers on one file.

use std::time::Duration;

use kagzi_faults::{Pace, Script, stage, start_request};
use kagzi_proto::v1::{self, WorkflowStatus};
use tokio::{io::AsyncWriteExt, net::TcpStream};
use tonic::Code;
use tonic_health::pb::{health_check_response::ServingStatus, health_client::HealthClient};

#[tokio::test]
async fn a_terminated_server_does_not_wait_for_long_polls() {
    let stage = stage!(Pace::Steady);
    let worker = stage.hand_worker("other").await;
    let _streaming = stage.worker(&[]).await;
    let run = stage.start_with(start_request("by-hand", &Script::default())).await.unwrap().run_id;
    let wait = v1::WaitWorkflowRunRequest { run_id: run.clone(), timeout_ms: 60_000, ..Default::default() };
    let mut workflows = stage.workflows();
    let waiting = tokio::spawn(async move { workflows.wait_workflow_run(wait).await });
    let polling = tokio::spawn(async move { worker.poll_answer(60_000).await });
    // Both calls are on the way once a third on the same connection was answered.
    stage.until(&run, WorkflowStatus::Pending).await;

    let mut server = stage.take_server();
    server.terminate();
    let ended = tokio::time::timeout(Duration::from_secs(5), server.ended()).await;

    assert!(ended.expect("within a few seconds").success(), "{}", server.said());
    assert_eq!(waiting.await.unwrap().unwrap_err().code(), Code::Unavailable);
    assert_eq!(polling.await.unwrap().unwrap_err().code(), Code::Unavailable);
    stage.restart_server().await;
    assert_eq!(stage.run(&run).await.status(), WorkflowStatus::Pending);
    stage.close().await;
}

#[tokio::test]
async fn a_terminated_server_does_not_wait_for_a_peer_that_never_finishes_its_request() {
    let stage = stage!(Pace::Steady);
    let mut half_a_request = TcpStream::connect(stage.address).await.unwrap();
    half_a_request.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n").await.unwrap();
    let mut half_a_preface = TcpStream::connect(stage.address).await.unwrap();
    half_a_preface.write_all(b"PRI * HTTP/2.0").await.unwrap();
    // A call that lasts as long as somebody listens.
    let watch = tonic_health::pb::HealthCheckRequest { service: String::new() };
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{}", stage.address)).unwrap();
    let mut health = HealthClient::new(endpoint.connect().await.unwrap());
    let mut watching = health.watch(watch).await.unwrap().into_inner();
    assert_eq!(watching.message().await.unwrap().unwrap().status(), ServingStatus::Serving);

    let mut server = stage.take_server();
    server.terminate();
    let ended = tokio::time::timeout(Duration::from_secs(10), server.ended()).await;

    assert!(ended.expect("within a few seconds").success(), "{}", server.said());
    assert_eq!(watching.message().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    assert_eq!(
        watching.message().await.unwrap(),
        None,
        "whoever watches is told, and no longer kept waiting"
    );
    stage.restart_server().await;
    stage.start(&Script::default()).await;
    stage.close().await;
}

#[tokio::test]
async fn a_second_server_on_the_file_is_refused_by_name_and_pid_while_the_first_works_on() {
    let stage = stage!(Pace::Steady);
    let _worker = stage.worker(&[]).await;
    let run = stage.start(&Script::default().gated("charge")).await;
    stage.began(&run, "charge", 1).await;

    let mut second = stage.second_server();
    let ended = second.ended().await;
    let said = second.said();
    stage.log.open_gate("charge");
    stage.completed(&run).await;

    assert!(!ended.success());
    assert!(said.contains(&stage.file().display().to_string()), "{said}");
    assert!(said.contains(&format!("pid {}", stage.server_pid())), "{said}");
    stage.close().await;
}

#[tokio::test]
async fn the_lock_of_a_killed_server_does_not_keep_the_next_one_out() {
    let stage = stage!(Pace::Steady);
    let run = stage.start(&Script::steps(&["a"])).await;

    for _ in 0..3 {
        stage.kill_server().await;
        stage.restart_server().await;
    }
    let _worker = stage.worker(&[]).await;
    stage.completed(&run).await;

    stage.close().await;
}
