use std::time::Duration;

use kagzi::error::{Code, Error};
use kagzi_proto::v1::{self, answer, report, server_message};
use kagzi_proto::{Reason, refusal};
use tonic::Status;

use crate::register_all;
use crate::scripted_server::{ScriptedServer, ended, lease};

#[tokio::test(start_paused = true)]
async fn a_worker_registers_executes_and_reports() {
    let mut server = ScriptedServer::start();
    let mut worker = server.worker().await;
    register_all(&mut worker);
    let worker = tokio::spawn(worker.run());

    let (mut stream, hello) = server.welcome().await;
    stream.assign("r1", "one_step").await;
    let (run, seq, body) = stream.next_report().await;
    assert_eq!((run.as_str(), seq), ("r1", 1));
    assert!(matches!(body, report::Body::StepRecorded(_)), "{body:?}");
    stream.commit(seq).await;
    let (_, seq, body) = stream.next_report().await;
    assert!(matches!(body, report::Body::RunCompleted(_)), "{body:?}");
    assert_eq!(stream.next_heartbeat().await, ["r1"], "held until its end is acknowledged");
    stream.commit(seq).await;
    while !stream.next_heartbeat().await.is_empty() {}

    let registration = hello.registration.unwrap();
    assert_eq!(registration.workflow_types, ["endless", "one_step"]);
    assert_eq!((registration.task_queue.as_str(), registration.max_concurrent), ("orders", Some(100)));
    assert_eq!(registration.pid, std::process::id() as i32);
    assert!(uuid::Uuid::try_parse(&hello.worker_id).is_ok(), "{}", hello.worker_id);
    assert_eq!(hello.holding.len(), 0);
    worker.abort();
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_unacknowledged_reports_are_sent_again_under_their_numbers() {
    let mut server = ScriptedServer::start();
    let mut worker = server.worker().await;
    register_all(&mut worker);
    let worker = tokio::spawn(worker.run());
    let (mut stream, _) = server.welcome().await;
    for run in ["r1", "r2", "r3"] {
        stream.assign(run, "one_step").await;
    }
    let mut sent = Vec::new();
    for _ in 0..3 {
        let (run, seq, _) = stream.next_report().await;
        sent.push((run, seq));
    }
    stream.fail(Status::unavailable("killed")).await;

    let lost = vec![v1::LostLease { lease: Some(lease("r2")), ..Default::default() }];
    let (mut stream, hello) = server.welcome_with(v1::Welcome { lost, ..Default::default() }).await;
    let mut sent_again = Vec::new();
    for _ in 0..2 {
        let (run, seq, _) = stream.next_report().await;
        sent_again.push((run, seq));
    }

    assert_eq!(hello.worker_id, "w1");
    assert_eq!(hello.holding.len(), 3);
    sent.retain(|(run, _)| run != "r2");
    assert_eq!(sent_again, sent);
    let mut held = stream.next_heartbeat().await;
    held.sort();
    assert_eq!(held, ["r1", "r3"]);
    worker.abort();
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_steps_that_still_run_are_told_again_with_their_age() {
    let mut server = ScriptedServer::start();
    let mut worker = server.worker().await;
    register_all(&mut worker);
    let worker = tokio::spawn(worker.run());
    let (mut stream, _) = server.welcome().await;
    stream.assign("r1", "endless").await;
    stream.assign("r2", "one_step").await;
    let (run, _, _) = stream.next_report().await;
    let first = stream.next_step_started("r1").await;
    assert_eq!(run, "r2");
    assert!(first.elapsed_ms < 1_000, "{first:?}");
    tokio::time::sleep(Duration::from_secs(7)).await;
    stream.fail(Status::unavailable("killed")).await;

    let (mut stream, _) = server.welcome().await;
    let (run, _, _) = stream.next_report().await;
    let again = stream.next_step_started("r1").await;

    assert_eq!(run, "r2", "what ended comes first");
    assert_eq!((&again.step, again.attempt), (&first.step, 1));
    assert!(again.elapsed_ms >= 7_000, "{again:?}");
    worker.abort();
}

#[tokio::test(start_paused = true)]
async fn a_report_that_could_not_be_committed_now_is_sent_again() {
    let mut server = ScriptedServer::start();
    let mut worker = server.worker().await;
    register_all(&mut worker);
    let worker = tokio::spawn(worker.run());
    let (mut stream, _) = server.welcome().await;
    stream.assign("r1", "one_step").await;
    let (_, seq, _) = stream.next_report().await;

    let refused = refusal::to_rpc(&Reason::StoreUnavailable.status("busy"));
    stream.answer(seq, answer::Body::Refused(refused)).await;
    let (_, again, body) = stream.next_report().await;

    assert_eq!(again, seq);
    assert!(matches!(body, report::Body::StepRecorded(_)), "{body:?}");
    worker.abort();
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_that_is_refused_is_an_error() {
    let mut server = ScriptedServer::start();
    let mut worker = server.worker().await;
    register_all(&mut worker);
    let worker = tokio::spawn(worker.run());

    server.next_stream().await.fail(Status::invalid_argument("no such namespace")).await;

    let error = ended(worker).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::InvalidArgument), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_worker_without_functions_or_with_one_type_twice_does_not_start() {
    let server = ScriptedServer::start();
    let empty = server.worker().await;
    let mut twice = server.worker().await;
    register_all(&mut twice);
    register_all(&mut twice);

    assert!(matches!(empty.run().await, Err(Error::InvalidWorker(_))));
    assert!(matches!(twice.run().await, Err(Error::InvalidWorker(_))));
}

#[tokio::test(start_paused = true)]
async fn a_journal_in_pages_is_replayed_as_one() {
    let mut server = ScriptedServer::start();
    let mut worker = server.worker().await;
    register_all(&mut worker);
    let worker = tokio::spawn(worker.run());
    let (mut stream, _) = server.welcome().await;

    let assign = v1::Assign {
        lease: Some(lease("r1")),
        workflow_type: "one_step".into(),
        journal_continues: true,
        ..Default::default()
    };
    stream.send(server_message::Message::Assign(Box::new(assign))).await;
    assert_eq!(stream.next_heartbeat().await, ["r1"], "held although its journal is still arriving");
    let result = v1::Payload { data: "5".into(), content_type: String::new() };
    let recorded = v1::JournalEntry {
        step: Some(v1::StepRef { path: "only".into(), position: 0 }),
        status: v1::StepStatus::Completed.into(),
        result: Some(result),
        ..Default::default()
    };
    let page =
        v1::JournalPage { lease: Some(lease("r1")), journal: vec![recorded], journal_continues: false };
    stream.send(server_message::Message::JournalPage(page)).await;
    let (_, _, body) = stream.next_report().await;

    let report::Body::RunCompleted(completed) = body else { panic!("not completed: {body:?}") };
    assert_eq!(completed.output.unwrap().data, "5");
    worker.abort();
}
