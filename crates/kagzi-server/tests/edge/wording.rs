//! Refusals say what was sent, in the unit in which it was sent, and whose mistake it is.

use std::time::{Duration, SystemTime};

use kagzi_proto::v1;
use tonic::{
    Code, Request, Status,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

use crate::stage::Stage;

fn start() -> v1::StartWorkflowRequest {
    v1::StartWorkflowRequest {
        workflow_type: "order".into(),
        task_queue: "orders".into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_deadline_is_quoted_as_a_time_and_refused_beyond_the_year_9999() {
    let stage = Stage::open().await;
    let mut workflows = stage.workflows().await;
    let with = |seconds| {
        let deadline_at = Some(prost_types::Timestamp { seconds, nanos: 17_000_000 });
        v1::StartWorkflowRequest { deadline_at, ..start() }
    };

    let past = workflows.start_workflow(with(1_700_000_000)).await.unwrap_err();
    assert!(
        past.message().starts_with("deadline_at is 2023-11-14T22:13:20.017Z: it must be in the future"),
        "{past}"
    );
    let never = workflows.start_workflow(with(253_402_300_800)).await.unwrap_err();
    assert_eq!(never.code(), Code::InvalidArgument);
    assert!(never.message().contains("years 1 to 9999"), "{never}");
    stage.close().await;
}

#[tokio::test]
async fn a_sleep_that_is_too_long_is_quoted_in_seconds() {
    let stage = Stage::open().await;
    let sleep = v1::ScheduleSleepRequest {
        run_id: uuid::Uuid::nil().to_string(),
        lease_epoch: 1,
        duration_seconds: 3_155_760_000,
        ..Default::default()
    };

    let refused = stage.workers().await.schedule_sleep(sleep).await.unwrap_err();

    assert!(refused.message().starts_with("duration_seconds is 3155760000: it is in seconds"), "{refused}");
    stage.close().await;
}

#[tokio::test]
async fn a_name_of_spaces_or_with_spaces_around_it_is_refused_and_not_made() {
    let stage = Stage::open().await;
    let mut workflows = stage.workflows().await;

    for name in [" ", " orders", "orders "] {
        for request in [
            v1::StartWorkflowRequest { task_queue: name.into(), ..start() },
            v1::StartWorkflowRequest { namespace_id: name.into(), ..start() },
            v1::StartWorkflowRequest { business_id: name.into(), ..start() },
        ] {
            let refused = workflows.start_workflow(request).await.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
            assert!(refused.message().contains("begins or ends with a space"), "{refused}");
        }
    }
    stage.close().await;
}

#[tokio::test]
async fn bytes_that_are_no_message_are_the_senders_mistake() {
    let stage = Stage::open().await;

    for method in [
        "WorkflowService/StartWorkflow",
        "WorkerService/RegisterWorker",
        "ScheduleService/GetSchedule",
        "AdminService/PauseQueue",
    ] {
        // A field of a length that is not there, and a text that is not UTF-8.
        for bytes in [vec![0x0a, 0x7f], vec![0x0a, 0x02, 0xff, 0xfe]] {
            let mut client = tonic::client::Grpc::new(stage.channel().await);
            client.ready().await.unwrap();
            let path = format!("/kagzi.v1.{method}").parse().unwrap();
            let refused = client.unary(Request::new(bytes), path, Plain).await.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{method}: {refused}");
        }
    }
    stage.close().await;
}

#[tokio::test]
async fn why_names_the_deadline_where_it_comes_before_the_retry() {
    let stage = Stage::open().await;
    let (mut workflows, mut workers) = (stage.workflows().await, stage.workers().await);
    let register = v1::RegisterWorkerRequest {
        task_queue: "orders".into(),
        workflow_types: vec!["order".into()],
        ..Default::default()
    };
    let worker_id = workers.register_worker(register).await.unwrap().into_inner().worker_id;
    let deadline = SystemTime::now() + Duration::from_secs(60);
    let request = v1::StartWorkflowRequest { deadline_at: Some(deadline.into()), ..start() };
    let run_id = workflows.start_workflow(request).await.unwrap().into_inner().run_id;
    let poll = v1::PollActivityRequest {
        worker_id,
        supported_workflow_types: vec!["order".into()],
        ..Default::default()
    };
    let leased = workers.poll_activity(poll).await.unwrap().into_inner();
    let fail = v1::FailStepRequest {
        run_id: run_id.clone(),
        lease_epoch: leased.lease_epoch,
        step_id: "charge".into(),
        error: "down".into(),
        retry_after_ms: 3_600_000,
        ..Default::default()
    };
    assert!(workers.fail_step(fail).await.unwrap().into_inner().scheduled_retry);

    let explain = v1::ExplainWorkflowRunRequest { run_id, ..Default::default() };
    let why = workflows.explain_workflow_run(explain).await.unwrap().into_inner();

    assert!(format!("{why:?}").contains("its deadline comes first: it will time out at"), "{why:?}");
    stage.close().await;
}

/// Messages that are bytes already.
#[derive(Clone, Copy)]
struct Plain;

impl Codec for Plain {
    type Encode = Vec<u8>;
    type Decode = ();
    type Encoder = Plain;
    type Decoder = Plain;

    fn encoder(&mut self) -> Plain {
        Plain
    }

    fn decoder(&mut self) -> Plain {
        Plain
    }
}

impl Encoder for Plain {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        bytes::BufMut::put_slice(out, &item);
        Ok(())
    }
}

impl Decoder for Plain {
    type Item = ();
    type Error = Status;

    fn decode(&mut self, read: &mut DecodeBuf<'_>) -> Result<Option<()>, Status> {
        let left = bytes::Buf::remaining(read);
        bytes::Buf::advance(read, left);
        Ok(Some(()))
    }
}
