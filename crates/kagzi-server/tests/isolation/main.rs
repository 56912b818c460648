//! Two namespaces cannot reach each other, by any field of any call.
//!
//! The calls are not listed here: they are read from the descriptors, so a new one is tried without anybody
//! remembering it. Every request is sent from the thief's namespace with everything that the victim has: as
//! it would be written, as a prefix, with each field left out, and in every field that takes a text.
//! Afterwards the victim's whole state is as before, and no answer held anything of it.

mod streams;

use std::net::SocketAddr;

use bytes::{Buf, BufMut};
use kagzi_proto::{
    FILE_DESCRIPTOR_SET,
    v1::{
        self, admin_service_client::AdminServiceClient, schedule_service_client::ScheduleServiceClient,
        worker_service_client::WorkerServiceClient, workflow_service_client::WorkflowServiceClient,
    },
};
use kagzi_server::{
    Options, Server, StoreUrl,
    config::{Loaded, Sources},
};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tonic::{
    Request, Status,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    transport::{Channel, Endpoint},
};

/// In every text and payload of the victim.
const SECRET: &str = "victims-secret";
const QUEUE: &str = "victims-queue";

/// Calls that know no namespaces: they tell about the server as a whole.
const GLOBAL: [&str; 3] = ["HealthCheck", "GetServerInfo", "ListNamespaces"];

/// Streams, on which each message that can be sent is tried.
const STREAMS: [&str; 2] = ["Work", "Converse"];

/// What the victim has and the thief has learnt.
#[derive(Clone)]
struct Loot {
    run: String,
    epoch: u64,
    worker: String,
    schedule: String,
    business: String,
}

/// How a request is filled.
#[derive(Clone, Copy)]
enum Filling<'l> {
    /// Every field by its name.
    AsWritten(&'l Loot),
    /// The same with the beginnings of ids, which many calls take.
    Prefixes(&'l Loot),
    /// One text in every field that takes one.
    Everywhere(&'l str),
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_field_of_any_call_reaches_another_namespace() {
    let (channel, stop, serving) = serve().await;
    let loot = furnish(&channel).await;
    let before = victim(&channel).await;
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
    let everywhere = [&loot.run, &loot.worker, &loot.schedule, &loot.business, QUEUE, "victim"];
    let (mut tried, mut answered) = (0, 0);

    for method in pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()) {
        if GLOBAL.contains(&method.name()) {
            assert!(method.input().get_field_by_name("namespace_id").is_none(), "{} has one", method.name());
            continue;
        }
        if STREAMS.contains(&method.name()) {
            assert!(method.is_client_streaming(), "{} is a stream", method.name());
            continue;
        }
        let fillings = [Filling::AsWritten(&loot), Filling::Prefixes(&loot)];
        let fillings = fillings.into_iter().chain(everywhere.iter().map(|text| Filling::Everywhere(text)));
        let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
        let mut requests: Vec<_> = fillings.map(|filling| fill(&method.input(), filling, 0)).collect();
        // What is checked beside one field may be forgotten when that field is left out.
        let full = requests[0].clone();
        for field in method.input().fields().filter(|field| field.name() != "namespace_id") {
            let mut without = full.clone();
            without.clear_field(&field);
            requests.push(without);
        }
        for request in requests {
            let path = path.clone();
            tried += 1;
            if let Ok(answer) = call(&channel, path, request.encode_to_vec()).await {
                answered += 1;
                let told = String::from_utf8_lossy(&answer);
                assert!(!told.contains(SECRET), "{} tells {told}\nasked {request}", method.name());
            }
        }
        assert_eq!(victim(&channel).await, before, "{} changed the victim", method.name());
    }

    let (said, heard) = streams::try_all(&channel, &pool, &loot).await;
    assert_eq!(victim(&channel).await, before, "a stream changed the victim");
    assert!(said > 100 && heard > 50, "{said} streams, {heard} were answered");
    println!("{said} streams, {heard} answered");

    // Most are refused, and those that work in the thief's own namespace are not.
    assert!(tried > 500 && answered > 100, "{tried} requests, {answered} answered");
    println!("{tried} requests, {answered} answered");
    stop.cancel();
    serving.await.unwrap().unwrap();
}

async fn serve() -> (Channel, CancellationToken, tokio::task::JoinHandle<anyhow::Result<()>>) {
    let config = Loaded::load(Sources::default()).unwrap().config;
    let options =
        Options { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..config.options(StoreUrl::Memory) };
    let (told, ready) = oneshot::channel();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(Server::serve(options, |address| told.send(address).unwrap(), stop.clone()));
    let address = ready.await.unwrap();
    let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
    (channel, stop, serving)
}

/// A leased run with a step, one that waits, a worker, a schedule and a paused queue, all of the victim's.
async fn furnish(channel: &Channel) -> Loot {
    let namespace_id = "victim".to_owned();
    let secret = || v1::Payload { data: SECRET.into(), content_type: String::new() };
    let mut workflows = WorkflowServiceClient::new(channel.clone());
    let mut workers = WorkerServiceClient::new(channel.clone());
    let register = v1::RegisterWorkerRequest {
        namespace_id: namespace_id.clone(),
        task_queue: QUEUE.into(),
        workflow_types: vec!["order".into()],
        hostname: SECRET.into(),
        max_concurrent: Some(10),
        ..Default::default()
    };
    let worker = workers.register_worker(register).await.unwrap().into_inner().worker_id;
    let start = |business_id: &str| v1::StartWorkflowRequest {
        namespace_id: namespace_id.clone(),
        workflow_type: "order".into(),
        task_queue: QUEUE.into(),
        business_id: business_id.into(),
        input: Some(secret()),
        labels: [("label".to_owned(), SECRET.to_owned())].into(),
        ..Default::default()
    };
    let business = "victims-order-1".to_owned();
    let run = workflows.start_workflow(start(&business)).await.unwrap().into_inner().run_id;
    let poll = v1::PollActivityRequest {
        namespace_id: namespace_id.clone(),
        worker_id: worker.clone(),
        supported_workflow_types: vec!["order".into()],
        ..Default::default()
    };
    let leased = workers.poll_activity(poll).await.unwrap().into_inner();
    assert_eq!(leased.run_id, run);
    let step = v1::CompleteStepRequest {
        namespace_id: namespace_id.clone(),
        run_id: run.clone(),
        lease_epoch: leased.lease_epoch,
        step_id: "charge".into(),
        output: SECRET.into(),
        ..Default::default()
    };
    workers.complete_step(step).await.unwrap();
    workflows.start_workflow(start("victims-order-2")).await.unwrap();
    let schedule = "victims-schedule".to_owned();
    let create = v1::CreateScheduleRequest {
        namespace_id: namespace_id.clone(),
        schedule_id: schedule.clone(),
        spec: Some(v1::ScheduleSpec {
            cron: "0 0 1 1 *".into(),
            workflow_type: "order".into(),
            task_queue: QUEUE.into(),
            input: Some(secret()),
            ..Default::default()
        }),
        ..Default::default()
    };
    ScheduleServiceClient::new(channel.clone()).create_schedule(create).await.unwrap();
    let pause = v1::PauseQueueRequest {
        namespace_id,
        // Another one: what waits on the first may be claimed.
        task_queue: "victims-paused-queue".into(),
        note: SECRET.into(),
        ..Default::default()
    };
    AdminServiceClient::new(channel.clone()).pause_queue(pause).await.unwrap();
    Loot { run, epoch: leased.lease_epoch, worker, schedule, business }
}

/// Everything that can be known of the victim, as text.
async fn victim(channel: &Channel) -> Vec<String> {
    let namespace_id = "victim".to_owned();
    let mut workflows = WorkflowServiceClient::new(channel.clone());
    let mut admin = AdminServiceClient::new(channel.clone());
    let runs = v1::ListWorkflowRunsRequest { namespace_id: namespace_id.clone(), ..Default::default() };
    let runs = workflows.list_workflow_runs(runs).await.unwrap().into_inner().workflow_runs;
    let mut known = Vec::new();
    for run in runs {
        let events = v1::ListRunEventsRequest {
            namespace_id: namespace_id.clone(),
            run_id: run.run_id.clone(),
            ..Default::default()
        };
        let events = workflows.list_run_events(events).await.unwrap().into_inner();
        known.push(format!("{run:?}"));
        known.push(format!("{events:?}"));
    }
    let workers = v1::ListWorkersRequest { namespace_id: namespace_id.clone(), ..Default::default() };
    let workers = WorkerServiceClient::new(channel.clone()).list_workers(workers).await.unwrap().into_inner();
    known.push(format!("{workers:?}"));
    let schedules = v1::ListSchedulesRequest { namespace_id: namespace_id.clone(), ..Default::default() };
    let schedules = ScheduleServiceClient::new(channel.clone()).list_schedules(schedules).await.unwrap();
    known.push(format!("{:?}", schedules.into_inner()));
    let queues = v1::ListQueuesRequest { namespace_id: namespace_id.clone(), ..Default::default() };
    let queues = admin.list_queues(queues).await.unwrap().into_inner().queues;
    let gates: Vec<_> = queues.iter().map(|queue| (&queue.task_queue, &queue.gate)).collect();
    assert!(!gates.is_empty(), "the pause is seen");
    known.push(format!("{gates:?}"));
    let namespace = v1::GetNamespaceRequest { namespace_id };
    known.push(format!("{:?}", admin.get_namespace(namespace).await.unwrap().into_inner()));
    known
}

/// A request of the thief's.
fn fill(message: &MessageDescriptor, filling: Filling<'_>, depth: usize) -> DynamicMessage {
    let mut filled = DynamicMessage::new(message.clone());
    for field in message.fields() {
        // Messages that hold themselves end somewhere.
        if depth > 4 || field.is_map() {
            continue;
        }
        // One of several; the others would take its place.
        if let Some(one) = field.containing_oneof()
            && one.fields().next() != Some(field.clone())
            && field.field_descriptor_proto().proto3_optional != Some(true)
        {
            continue;
        }
        let Some(value) = value_of(&field, filling, depth) else { continue };
        let value = if field.is_list() { Value::List(vec![value]) } else { value };
        filled.set_field(&field, value);
    }
    filled
}

fn value_of(field: &FieldDescriptor, filling: Filling<'_>, depth: usize) -> Option<Value> {
    match field.kind() {
        Kind::String => Some(Value::String(text_of(field.name(), filling)?)),
        Kind::Message(inner) if inner.full_name().starts_with("kagzi.") => {
            Some(Value::Message(fill(&inner, filling, depth + 1)))
        }
        Kind::Uint64 if matches!(field.name(), "lease_epoch" | "epoch") => match filling {
            Filling::AsWritten(loot) | Filling::Prefixes(loot) => Some(Value::U64(loot.epoch)),
            Filling::Everywhere(_) => Some(Value::U64(1)),
        },
        Kind::Int64 if field.name() == "timeout_ms" => Some(Value::I64(20)),
        // Numbers, times and switches name nobody.
        _ => None,
    }
}

fn text_of(name: &str, filling: Filling<'_>) -> Option<String> {
    let short = |id: &str, filling| match filling {
        Filling::Prefixes(_) => id[..8].to_owned(),
        Filling::AsWritten(_) | Filling::Everywhere(_) => id.to_owned(),
    };
    if name == "namespace_id" {
        return Some("thief".into());
    }
    let loot = match filling {
        Filling::AsWritten(loot) | Filling::Prefixes(loot) => loot,
        Filling::Everywhere(text) => return Some(text.to_owned()),
    };
    Some(match name {
        "run_id" => short(&loot.run, filling),
        "worker_id" => short(&loot.worker, filling),
        "schedule_id" => loot.schedule.clone(),
        "business_id" => loot.business.clone(),
        "task_queue" | "filter_task_queue" => QUEUE.into(),
        "workflow_type" | "workflow_types" | "supported_workflow_types" => "order".into(),
        "step_id" | "path" => "charge".into(),
        "cron" => "0 0 1 1 *".into(),
        "reason" | "note" | "by" | "name" | "value" | "label" | "hostname" | "trigger_id" | "code"
        | "message" => "thief".into(),
        _ => return None,
    })
}

/// The answer; of a watch the first one, which tells how everything is.
async fn call(channel: &Channel, path: String, request: Vec<u8>) -> Result<Vec<u8>, Status> {
    let mut client = tonic::client::Grpc::new(channel.clone());
    client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let answers = client.server_streaming(Request::new(request), path.parse().unwrap(), Plain).await?;
    Ok(answers.into_inner().message().await?.unwrap_or_default())
}

/// Messages that are bytes already.
#[derive(Clone, Copy)]
struct Plain;

impl Codec for Plain {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
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
        out.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Plain {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, read: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut bytes = vec![0; read.remaining()];
        read.copy_to_slice(&mut bytes);
        Ok(Some(bytes))
    }
}
