//! A page of somebody else's site, open in a browser on the developer's machine, sends requests to the server
//! on loopback. A browser allows this without asking anybody, as long as the request is a "simple" one.

use kagzi_proto::v1;
use prost::Message;

use crate::stage::Stage;

/// Methods that change something, each with a request that an attacker would choose.
fn attacks() -> Vec<(&'static str, Vec<u8>)> {
    let start = v1::StartWorkflowRequest {
        workflow_type: "payout".into(),
        task_queue: "default".into(),
        ..Default::default()
    };
    vec![
        ("AdminService/PauseQueue", v1::PauseQueueRequest::default().encode_to_vec()),
        (
            "AdminService/DisableNamespace",
            v1::DisableNamespaceRequest { namespace_id: "default".into(), ..Default::default() }
                .encode_to_vec(),
        ),
        (
            "AdminService/CreateNamespace",
            v1::CreateNamespaceRequest { namespace_id: "evil".into(), ..Default::default() }.encode_to_vec(),
        ),
        ("WorkflowService/StartWorkflow", start.encode_to_vec()),
    ]
}

/// What `fetch` sends across origins without a preflight, byte by byte. A blob without a type has no content
/// type; a string has text/plain.
fn simple_request(stage: &Stage, path: &str, content_type: Option<&str>, message: &[u8]) -> Vec<u8> {
    let mut body = vec![0];
    body.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    body.extend(message);
    let content_type = content_type.map(|kind| format!("Content-Type: {kind}\r\n")).unwrap_or_default();
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n{content_type}\
         User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\nAccept: \
         */*\r\n\
         Origin: https://evil.example\r\nReferer: https://evil.example/\r\nSec-Fetch-Dest: empty\r\n\
         Sec-Fetch-Mode: no-cors\r\nSec-Fetch-Site: cross-site\r\n\r\n",
        stage.address,
        body.len(),
    )
    .into_bytes();
    request.extend(body);
    request
}

async fn nothing_changed(stage: &Stage) {
    let queues = v1::ListQueuesRequest::default();
    let queues = stage.admin().await.list_queues(queues).await.unwrap().into_inner();
    assert_eq!(queues.queues, [], "no queue was paused or filled");
    let names = stage.admin().await.list_namespaces(v1::ListNamespacesRequest::default()).await.unwrap();
    let names = names.into_inner().namespaces;
    assert!(names.iter().all(|one| one.namespace_id != "evil" && !one.disabled), "{names:?}");
    let runs = v1::ListWorkflowRunsRequest::default();
    let runs = stage.workflows().await.list_workflow_runs(runs).await.unwrap().into_inner();
    assert_eq!(runs.workflow_runs, [], "nothing was started");
}

#[tokio::test]
async fn what_a_browser_sends_from_a_foreign_page_changes_nothing() {
    let stage = Stage::open().await;
    let simple = [
        None,
        Some("text/plain;charset=UTF-8"),
        Some("application/x-www-form-urlencoded"),
        Some("multipart/form-data; boundary=x"),
    ];

    for (method, message) in attacks() {
        for content_type in simple {
            let path = format!("/kagzi.v1.{method}");
            let (status, answer) = stage.say(&simple_request(&stage, &path, content_type, &message)).await;
            assert_eq!(status, 415, "{method} as {content_type:?}: {answer}");
        }
    }

    nothing_changed(&stage).await;
    stage.close().await;
}

#[tokio::test]
async fn a_request_that_needs_a_preflight_is_not_allowed_by_it_and_not_obeyed_without_it() {
    let stage = Stage::open().await;

    for (method, message) in attacks() {
        let path = format!("/kagzi.v1.{method}");
        let preflight = format!(
            "OPTIONS {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nOrigin: https://evil.example\r\n\
             Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n\r\n",
            stage.address
        );
        let (status, answer) = stage.say(preflight.as_bytes()).await;
        assert_eq!(status, 415, "{answer}");
        assert!(!answer.to_lowercase().contains("access-control-allow"), "{answer}");
        // HTTP/1 is refused even with the right content type.
        let request = simple_request(&stage, &path, Some("application/grpc"), &message);
        assert_eq!(stage.say(&request).await.0, 415);
    }

    nothing_changed(&stage).await;
    stage.close().await;
}

#[tokio::test]
async fn a_name_that_was_bound_to_loopback_by_its_owner_reads_nothing() {
    let stage = Stage::open().await;
    let get = |path: &str, host: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").into_bytes()
    };
    let port = stage.address.port();

    for path in ["/metrics", "/readyz", "/livez"] {
        for host in
            ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", ""]
        {
            let (status, answer) = stage.say(&get(path, host)).await;
            assert_eq!(status, 421, "{path} as {host}: {answer}");
            assert!(!answer.contains("kagzi_"), "{answer}");
        }
        for host in ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"] {
            assert_eq!(stage.say(&get(path, host)).await.0, 200, "{path} as {host}");
            assert_eq!(stage.say(&get(path, &format!("{host}:{port}"))).await.0, 200, "{path} as {host}");
        }
    }

    stage.close().await;
}

#[tokio::test]
async fn a_call_under_a_foreign_name_is_refused_with_the_setting_that_allows_it() {
    let stage = Stage::with(&[("server.allowed_hosts", "kagzi.internal")]).await;
    let info = |origin: &'static str| {
        let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{}", stage.address)).unwrap();
        async move {
            let channel = endpoint.origin(origin.parse().unwrap()).connect().await.unwrap();
            let mut admin = v1::admin_service_client::AdminServiceClient::new(channel);
            admin.get_server_info(v1::GetServerInfoRequest::default()).await
        }
    };

    let refused = info("http://evil.example").await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::PermissionDenied);
    assert!(refused.message().contains("server.allowed_hosts"), "{refused}");
    assert!(refused.message().contains("evil.example"), "{refused}");
    info("http://kagzi.internal:8080").await.unwrap();
    info("http://localhost:1").await.unwrap();

    stage.close().await;
}

#[tokio::test]
async fn probes_are_only_read() {
    let stage = Stage::open().await;
    let ask = |method: &str, path: &str| {
        let host = stage.address;
        format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            .into_bytes()
    };

    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(stage.say(&ask("GET", path)).await.0, 200);
        assert_eq!(stage.say(&ask("HEAD", path)).await.0, 200);
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
            assert_eq!(stage.say(&ask(method, path)).await.0, 405, "{method} {path}");
        }
    }
    assert_eq!(stage.say(&ask("GET", "/")).await.0, 404);
    assert_eq!(stage.say(&ask("GET", "/kagzi.v1.AdminService/ListNamespaces")).await.0, 415);

    stage.close().await;
}
