//! `/readyz` and gRPC's health service measure progress: a process that lives on a store that does not move
//! is not ready.

use kagzi_faults::{Home, Pace, Script, eventually, stage};
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_store_stalls_is_not_ready_until_it_moves_again() {
    let stage = stage!(Pace::Calm);
    assert_eq!(stage.ready().await, (200, "ready\n".into()));
    let mut health = stage.health();
    let request = |service: &str| HealthCheckRequest { service: service.into() };
    let mut watching = health.watch(request("kagzi.v1.WorkflowService")).await.unwrap().into_inner();
    assert_eq!(watching.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
    let now = health.check(request("")).await.unwrap().into_inner();
    assert_eq!(now.status(), ServingStatus::Serving);
    let unknown = health.check(request("kagzi.v1.Nobody")).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    assert!(unknown.message().starts_with("service is \"kagzi.v1.Nobody\": it must be"), "{unknown}");

    // Somebody else holds the write lock, as a backup tool or a hanging disk would.
    let other = rusqlite::Connection::open(stage.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let why = eventually("the server notices", async || {
        let (status, why) = stage.ready().await;
        (status == 503).then_some(why)
    })
    .await;
    assert!(why.starts_with("not ready: "), "{why}");
    assert_eq!(stage.metric("kagzi_ready").await, 0.0);
    assert_eq!(watching.message().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    let now = health.check(request("kagzi.v1.WorkerService")).await.unwrap().into_inner();
    assert_eq!(now.status(), ServingStatus::NotServing);

    other.execute_batch("ROLLBACK").unwrap();
    eventually("the server is ready again", async || (stage.ready().await.0 == 200).then_some(())).await;
    assert_eq!(watching.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
    let _worker = stage.worker(&[]).await;
    let run = stage.start(&Script::steps(&["a"])).await;
    stage.completed(&run).await;
    stage.close().await;
}

/// The stage of the tests themselves: it once tried for ever.
#[tokio::test]
#[should_panic(expected = "a server ended at its start")]
async fn a_server_that_cannot_start_fails_its_test_with_what_it_said() {
    let stage = stage!(Pace::Steady);
    let nowhere = stage.file().join("is").join("no-directory.db");

    stage.sibling_on(Home::File(nowhere)).await;
}
