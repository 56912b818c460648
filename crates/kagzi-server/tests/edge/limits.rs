//! What one connection may have open, and how large the head of a call may be.

use std::time::Duration;

use kagzi_proto::v1::{
    self, admin_service_client::AdminServiceClient, schedule_service_client::ScheduleServiceClient,
    workflow_service_client::WorkflowServiceClient,
};
use tokio::time::timeout;
use tonic::Request;

use crate::stage::Stage;

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_connection_has_so_many_calls_and_streams_at_once_and_others_are_not_held_up() {
    let stage = Stage::with(&[("server.streams_per_connection_max", "2")]).await;
    let channel = stage.channel().await;
    let mut watching = Vec::new();
    for _ in 0..2 {
        let mut client = WorkflowServiceClient::new(channel.clone());
        watching.push(client.watch_runs(v1::WatchRunsRequest::default()).await.unwrap().into_inner());
    }

    let mut third = AdminServiceClient::new(channel);
    let ask = |mut admin: AdminServiceClient<_>| async move {
        admin.get_server_info(v1::GetServerInfoRequest {}).await
    };
    let waiting = timeout(Duration::from_millis(500), ask(third.clone())).await;
    assert!(waiting.is_err(), "a third call was taken on a connection that has two streams");
    timeout(PATIENCE, ask(stage.admin().await)).await.expect("another connection is served").unwrap();

    watching.pop();
    timeout(PATIENCE, third.get_server_info(v1::GetServerInfoRequest {})).await.expect("now it is").unwrap();
    stage.close().await;
}

#[tokio::test]
async fn a_call_whose_head_is_too_large_is_refused_before_it_is_read() {
    let stage = Stage::open().await;
    let mut admin = stage.admin().await;
    let mut large = Request::new(v1::GetServerInfoRequest {});
    for n in 0..64 {
        let name: tonic::metadata::AsciiMetadataKey = format!("x-large-{n}").parse().unwrap();
        large.metadata_mut().insert(name, "7".repeat(4 * 1024).parse().unwrap());
    }

    let refused = timeout(PATIENCE, admin.get_server_info(large)).await.expect("it is answered");

    assert!(refused.is_err(), "a head of 256 KiB was taken");
    stage.admin().await.get_server_info(v1::GetServerInfoRequest {}).await.unwrap();
    stage.close().await;
}

/// One thread serves everybody here, so whatever is computed on it holds everybody up.
#[tokio::test(flavor = "current_thread")]
async fn a_timetable_that_is_rare_is_computed_beside_the_calls_of_others() {
    let stage = Stage::open().await;
    let (mut admin, mut schedules) = (stage.admin().await, ScheduleServiceClient::new(stage.channel().await));
    // Leap days that are Mondays, one every 28 years.
    let spec = Some(v1::ScheduleSpec { cron: "0 0 29 2 1#1".into(), ..Default::default() });
    let request = v1::NextScheduleTimesRequest { spec, count: 1_000, ..Default::default() };
    let rare = tokio::spawn(async move { schedules.next_schedule_times(request).await });

    let mut answered = 0;
    while !rare.is_finished() {
        admin.get_server_info(v1::GetServerInfoRequest {}).await.unwrap();
        answered += 1;
    }

    let told = rare.await.unwrap();
    println!(
        "{answered} calls were answered beside it: {:?}",
        told.map(|told| told.into_inner().times.len())
    );
    assert!(answered > 3, "only {answered} calls were answered meanwhile");
    stage.close().await;
}
