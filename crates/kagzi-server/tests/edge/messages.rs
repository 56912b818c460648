//! Messages that begin and do not end.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame};
use kagzi_proto::v1;
use prost::Message;
use tokio::time::timeout;
use tonic::{Code, Status, body::Body, codegen::http, transport::Channel};
use tower::{Service, ServiceExt};

use crate::stage::Stage;

const PATIENCE: Duration = Duration::from_secs(20);

/// A body that sends some bytes and then nothing, for ever.
struct Unfinished(Option<Bytes>);

impl HttpBody for Unfinished {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match self.0.take() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None => Poll::Pending,
        }
    }
}

/// The first bytes of a message that announces so many.
fn beginning(announced: u32) -> Bytes {
    let mut bytes = vec![0];
    bytes.extend(announced.to_be_bytes());
    bytes.extend([7; 10]);
    bytes.into()
}

async fn begin(channel: &Channel, path: &str, bytes: Bytes) -> http::Response<Body> {
    let request = http::Request::post(path)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Body::new(Unfinished(Some(bytes))))
        .unwrap();
    let mut channel = channel.clone();
    channel.ready().await.unwrap().call(request).await.unwrap()
}

fn code(response: &http::Response<Body>) -> Option<Code> {
    Status::from_header_map(response.headers()).map(|status| status.code())
}

fn start(bytes: usize) -> v1::StartWorkflowRequest {
    v1::StartWorkflowRequest {
        workflow_type: "order".into(),
        task_queue: "orders".into(),
        input: Some(v1::Payload { data: vec![b'1'; bytes].into(), content_type: String::new() }),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_call_whose_message_does_not_arrive_is_answered_in_time() {
    let stage = Stage::with(&[("server.message_timeout", "300ms")]).await;
    let channel = stage.channel().await;
    let path = "/kagzi.v1.WorkflowService/StartWorkflow";

    for sent in [beginning(1_000_000), Bytes::from_static(&[0, 0]), Bytes::new()] {
        let answer = timeout(PATIENCE, begin(&channel, path, sent)).await.expect("it is answered");
        assert_eq!(code(&answer), Some(Code::DeadlineExceeded), "{answer:?}");
    }

    stage.close().await;
}

#[tokio::test]
async fn a_stream_may_be_silent_between_messages_but_not_inside_one() {
    let stage = Stage::with(&[("server.message_timeout", "300ms")]).await;
    let channel = stage.channel().await;
    let path = "/kagzi.v1.WorkflowService/Converse";
    let ask = v1::ConverseRequest { asks: vec![] };
    let mut whole = vec![0];
    whole.extend(u32::try_from(ask.encoded_len()).unwrap().to_be_bytes());
    whole.extend(ask.encode_to_vec());

    let quiet = begin(&channel, path, whole.into()).await;
    let stuck = begin(&channel, path, beginning(1_000_000)).await;
    let ended = async |response: http::Response<Body>| {
        let mut body = response.into_body();
        loop {
            let frame = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
            let Some(Ok(frame)) = frame else { return None };
            if let Some(trailers) = frame.trailers_ref() {
                return Status::from_header_map(trailers).map(|status| status.code());
            }
        }
    };

    let code = timeout(PATIENCE, ended(stuck)).await.expect("the stuck one is ended");
    assert_eq!(code, Some(Code::DeadlineExceeded));
    // As old as the stuck one, and still open.
    assert!(timeout(Duration::from_millis(1), ended(quiet)).await.is_err());
    stage.close().await;
}

#[tokio::test]
async fn half_messages_share_a_budget_and_whole_ones_wait_for_room() {
    let stage = Stage::with(&[
        ("payload.max_size_bytes", "65536"),
        ("payload.warn_threshold_bytes", "65536"),
        ("server.receiving_bytes_max", "262144"),
        ("server.message_timeout", "2s"),
    ])
    .await;
    let channel = stage.channel().await;
    let path = "/kagzi.v1.WorkflowService/StartWorkflow";
    let greedy = tokio::spawn({
        let channel = channel.clone();
        async move { code(&begin(&channel, path, beginning(250_000)).await) }
    });
    // Its first bytes are counted when they were received.
    while stage.metric("kagzi_rpc_received_bytes_total").await < 15.0 {
        tokio::task::yield_now().await;
    }

    let mut workflows = stage.workflows().await;
    workflows.start_workflow(start(10)).await.expect("small messages are not held up");
    let large = tokio::spawn(timeout(PATIENCE, async move { workflows.start_workflow(start(60_000)).await }));
    let outcome = greedy.await.unwrap();

    assert_eq!(outcome, Some(Code::DeadlineExceeded));
    large.await.unwrap().expect("room was given back").expect("a whole message is accepted");
    stage.close().await;
}
