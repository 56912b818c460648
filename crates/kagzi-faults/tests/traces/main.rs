//! One run is one trace, from the client over the server to the worker and its steps, as a real OTLP receiver
//! sees it.

mod receiver;

use std::path::Path;

use kagzi::Client;
use kagzi::client::RunStatus;
use kagzi_faults::{ExecutionLog, Process, QUEUE, Script, StepPlan, eventually, spans, start_request};
use receiver::{Receiver, Span};
use tracing::Instrument;

/// A server and what is needed to start workers, all of which export to the receiver.
struct Stage {
    directory: tempfile::TempDir,
    receiver: Receiver,
    endpoint: String,
    address: String,
    _server: Process,
}

impl Stage {
    async fn open() -> Stage {
        let directory = tempfile::tempdir().unwrap();
        let (receiver, endpoint) = Receiver::open().await;
        let store = format!("sqlite:{}", directory.path().join("kagzi.db").display());
        let args = [
            ("--store", store.as_str()),
            ("--listen", "127.0.0.1:0"),
            ("--heartbeat-ms", "300"),
            ("--stale-ms", "3000"),
            ("--lease-ms", "4000"),
            ("--otlp", &endpoint),
        ];
        let args: Vec<String> =
            args.iter().flat_map(|(name, value)| [name.to_string(), value.to_string()]).collect();
        let log = directory.path().join("server.log");
        let mut server = Process::spawn(env!("CARGO_BIN_EXE_fault-server"), &args, &log);
        let address = server.announced("listening on ").await.expect("the server serves");
        Stage { directory, receiver, endpoint, address, _server: server }
    }

    fn dir(&self) -> &Path {
        self.directory.path()
    }

    fn worker(&self) -> Process {
        let dir = self.dir().display().to_string();
        let args = ["--address", &self.address, "--dir", &dir, "--otlp", &self.endpoint];
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        Process::spawn(env!("CARGO_BIN_EXE_fault-worker"), &args, &self.dir().join("worker.log"))
    }

    /// Waits until the trace has what is looked for.
    async fn spans<T>(&self, trace: &str, what: &str, mut find: impl FnMut(&[Span]) -> Option<T>) -> T {
        eventually(what, async || find(&self.receiver.of_trace(trace))).await
    }
}

fn named<'a>(spans: &'a [Span], service: &str, name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.service == service && span.name == name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_run_is_one_trace_from_the_client_to_its_steps() {
    let stage = Stage::open().await;
    let export = spans::export("client", &stage.endpoint).unwrap();
    let _worker = stage.worker();
    let client = Client::connect(stage.address.as_str()).await.unwrap();
    let flaky = StepPlan { name: "flaky".into(), failures: 1, retry_ms: Some(10), ..StepPlan::default() };

    let order = tracing::info_span!("order");
    let run = client
        .workflow("script", QUEUE, Script::steps(&["charge"]).planned(flaky))
        .into_future()
        .instrument(order)
        .await
        .unwrap();
    run.result::<serde_json::Value>().await.unwrap();

    export.flush().await;
    let trace = stage.receiver.traces_with("order").pop().expect("the client's spans are flushed");
    let spans = stage
        .spans(&trace, "the worker's last step arrives", |spans| {
            let steps = named(spans, "worker", "step").len();
            let runs = named(spans, "worker", "run").len();
            (steps == 3 && runs >= 1 && !named(spans, "kagzi", "lease").is_empty()).then(|| spans.to_vec())
        })
        .await;
    let one = |service: &str, name: &str| named(&spans, service, name)[0].clone();
    let (order, start) = (one("client", "order"), one("client", "start_run"));
    let (call, lease) = (one("kagzi", "StartWorkflow"), one("kagzi", "lease"));
    assert_eq!(order.parent, "");
    assert_eq!(start.parent, order.id);
    assert_eq!(call.parent, start.id);
    assert_eq!(lease.parent, call.id);
    assert_eq!(lease.attribute("kagzi.run"), run.run_id());
    let executions = named(&spans, "worker", "run");
    let execution = executions.iter().find(|execution| execution.parent == lease.id).unwrap();
    assert_eq!(execution.attribute("run"), run.run_id());
    let step = |name: &str, attempt: &str| {
        let found = named(&spans, "worker", "step")
            .into_iter()
            .find(|span| (span.attribute("step"), span.attribute("attempt")) == (name, attempt));
        let found = found.unwrap_or_else(|| panic!("no span of {name}, attempt {attempt}")).clone();
        assert_eq!(found.attribute("run"), run.run_id());
        assert_eq!(found.attribute("worker"), execution.attribute("worker"));
        found
    };
    assert_eq!(step("charge", "1").parent, execution.id);
    assert!(step("flaky", "1").failed);
    let retried = step("flaky", "2");
    assert!(!retried.failed);
    assert!(executions.iter().any(|execution| execution.id == retried.parent));
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_worker_crash_the_new_execution_links_to_the_former() {
    let stage = Stage::open().await;
    let log = ExecutionLog::open(stage.dir());
    let first = stage.worker();
    let client = Client::connect(stage.address.as_str()).await.unwrap();
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{}", stage.address)).unwrap();
    let mut rpc =
        kagzi_proto::v1::workflow_service_client::WorkflowServiceClient::new(endpoint.connect_lazy());
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";

    // Any client in any language: plain metadata is enough.
    let mut request =
        tonic::Request::new(start_request("script", &Script::steps(&["charge"]).gated("ship").step("mail")));
    let traceparent = format!("00-{trace}-00f067aa0ba902b7-01");
    request.metadata_mut().insert("traceparent", traceparent.parse().unwrap());
    let run = rpc.start_workflow(request).await.unwrap().into_inner().run_id;
    eventually("the gated step begins", async || (!log.began(&run, "ship").is_empty()).then_some(())).await;
    first.kill().await;
    let _second = stage.worker();
    eventually("another worker takes over", async || (log.began(&run, "ship").len() == 2).then_some(()))
        .await;
    log.open_gate("ship");
    eventually("the run ends", async || {
        let run = client.get(run.as_str()).await.unwrap();
        (run.status == RunStatus::Completed).then_some(())
    })
    .await;

    let spans = stage
        .spans(trace, "both leases and the second execution arrive", |spans| {
            let leases = named(spans, "kagzi", "lease").len();
            let ended = named(spans, "worker", "step").iter().any(|span| span.attribute("step") == "mail");
            (leases == 2 && ended && !named(spans, "worker", "run").is_empty()).then(|| spans.to_vec())
        })
        .await;
    let call = named(&spans, "kagzi", "StartWorkflow")[0].clone();
    assert_eq!(call.parent, "00f067aa0ba902b7");
    let leases = named(&spans, "kagzi", "lease");
    let of_epoch = |epoch: &str| leases.iter().find(|lease| lease.attribute("kagzi.epoch") == epoch).unwrap();
    let (former, latter) = (of_epoch("1"), of_epoch("2"));
    assert_eq!((former.parent.as_str(), latter.parent.as_str()), (call.id.as_str(), call.id.as_str()));
    assert!(former.links.is_empty());
    assert_eq!(latter.links, [former.id.as_str()]);
    let execution = named(&spans, "worker", "run").into_iter().find(|span| span.parent == latter.id).unwrap();
    assert_eq!(execution.links, [former.id.as_str()]);
    let shipped = named(&spans, "worker", "step")
        .into_iter()
        .find(|span| span.attribute("step") == "ship" && span.parent == execution.id);
    assert!(shipped.is_some(), "the repeated step belongs to the second execution");
}
