use kagzi_proto::v1::{self, answer, server_message};
use kagzi_proto::{Reason, refusal};

use crate::register_all;
use crate::scripted_server::{ScriptedServer, lease};

#[tokio::test(start_paused = true)]
async fn a_lost_lease_stops_the_run() {
    let mut server = ScriptedServer::start();
    let mut worker = server.worker().await;
    register_all(&mut worker);
    let worker = tokio::spawn(worker.run());
    let (mut stream, _) = server.welcome().await;
    stream.assign("r1", "endless").await;
    stream.assign("r2", "endless").await;

    let lost = v1::LostLease { lease: Some(lease("r1")), reason: "cancelled".into(), cancelled: true };
    stream.send(server_message::Message::LostLease(lost)).await;
    while stream.next_heartbeat().await != ["r2"] {}

    worker.abort();
}

#[tokio::test(start_paused = true)]
async fn a_report_refused_because_the_lease_is_lost_stops_the_run() {
    let mut server = ScriptedServer::start();
    let mut worker = server.worker().await;
    register_all(&mut worker);
    let worker = tokio::spawn(worker.run());
    let (mut stream, _) = server.welcome().await;
    stream.assign("r1", "one_step").await;
    let (_, seq, _) = stream.next_report().await;

    let refused = refusal::to_rpc(&Reason::LeaseLost.status("epoch 2"));
    stream.answer(seq, answer::Body::Refused(refused)).await;
    while !stream.next_heartbeat().await.is_empty() {}

    worker.abort();
}

#[tokio::test(start_paused = true)]
async fn a_newer_assignment_replaces_the_older_execution() {
    let mut server = ScriptedServer::start();
    let mut worker = server.worker().await;
    register_all(&mut worker);
    let worker = tokio::spawn(worker.run());
    let (mut stream, _) = server.welcome().await;
    stream.assign("r1", "one_step").await;
    let (_, old, _) = stream.next_report().await;

    let newer = v1::LeaseRef { run_id: "r1".into(), epoch: 2 };
    let assign = v1::Assign { lease: Some(newer), workflow_type: "one_step".into(), ..Default::default() };
    stream.send(server_message::Message::Assign(Box::new(assign))).await;
    let (_, new, _) = stream.next_report().await;
    // The old execution's word comes late; the new one goes on undisturbed.
    let lost = v1::LostLease { lease: Some(lease("r1")), ..Default::default() };
    stream.send(server_message::Message::LostLease(lost)).await;
    stream.commit(old).await;
    stream.commit(new).await;

    let (run, _, body) = stream.next_report().await;
    assert_eq!(run, "r1");
    assert!(matches!(body, v1::report::Body::RunCompleted(_)), "{body:?}");
    worker.abort();
}
