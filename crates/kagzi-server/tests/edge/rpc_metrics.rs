//! An operator sees what clients do.

use kagzi_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::stage::Stage;

#[tokio::test]
async fn calls_are_counted_by_method_and_code_with_their_time_and_bytes() {
    let stage = Stage::open().await;
    let mut workflows = stage.workflows().await;
    let start = |workflow_type: &str| v1::StartWorkflowRequest {
        workflow_type: workflow_type.into(),
        task_queue: "orders".into(),
        ..Default::default()
    };

    workflows.start_workflow(start("order")).await.unwrap();
    workflows.start_workflow(start("order")).await.unwrap();
    workflows.start_workflow(start("")).await.unwrap_err();

    let page = stage.metrics().await;
    let method = "method=\"WorkflowService/StartWorkflow\"";
    for line in [
        format!("kagzi_rpc_calls_total{{{method},code=\"OK\"}} 2\n"),
        format!("kagzi_rpc_calls_total{{{method},code=\"INVALID_ARGUMENT\"}} 1\n"),
        format!("kagzi_rpc_seconds_count{{{method}}} 3\n"),
        format!("kagzi_rpc_seconds_bucket{{{method},le=\"+Inf\"}} 3\n"),
        "kagzi_rpc_open{kind=\"call\"} 0\n".into(),
    ] {
        assert!(page.contains(&line), "no {line} in\n{page}");
    }
    assert!(stage.metric("kagzi_rpc_received_bytes_total").await >= 3.0 * 14.0);
    assert!(stage.metric("kagzi_rpc_sent_bytes_total").await >= 2.0 * 36.0);
    stage.close().await;
}

#[tokio::test]
async fn open_streams_are_seen_until_they_end() {
    let stage = Stage::open().await;
    let (asks, incoming) = mpsc::channel(1);
    let mut replies =
        stage.workflows().await.converse(ReceiverStream::new(incoming)).await.unwrap().into_inner();

    assert!(stage.metrics().await.contains("kagzi_rpc_open{kind=\"stream\"} 1\n"));
    drop::<mpsc::Sender<v1::ConverseRequest>>(asks);
    assert!(replies.message().await.unwrap().is_none(), "the conversation ends");

    let page = stage.metrics().await;
    assert!(page.contains("kagzi_rpc_open{kind=\"stream\"} 0\n"), "{page}");
    assert!(
        page.contains("kagzi_rpc_calls_total{method=\"WorkflowService/Converse\",code=\"OK\"} 1\n"),
        "{page}"
    );
    stage.close().await;
}

#[tokio::test]
async fn a_path_that_does_not_exist_makes_no_label_of_its_own() {
    let stage = Stage::open().await;
    let mut client = tonic::client::Grpc::new(stage.channel().await);
    client.ready().await.unwrap();
    let path = "/kagzi.v1.WorkflowService/Invented".parse().unwrap();
    let codec = tonic_prost::ProstCodec::<v1::GetServerInfoRequest, v1::GetServerInfoResponse>::default();

    let refused =
        client.unary(tonic::Request::new(v1::GetServerInfoRequest {}), path, codec).await.unwrap_err();

    assert_eq!(refused.code(), tonic::Code::Unimplemented);
    let page = stage.metrics().await;
    assert!(page.contains("kagzi_rpc_calls_total{method=\"other\",code=\"UNIMPLEMENTED\"} 1\n"), "{page}");
    assert!(!page.contains("Invented"), "{page}");
    stage.close().await;
}
