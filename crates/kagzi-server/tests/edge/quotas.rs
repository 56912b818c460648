//! What any client can make has an end, and the refusal says how to go on.

use kagzi_proto::{Reason, v1, v1::schedule_service_client::ScheduleServiceClient};
use tonic::Code;

use crate::stage::Stage;

fn start(namespace: &str) -> v1::StartWorkflowRequest {
    v1::StartWorkflowRequest {
        namespace_id: namespace.into(),
        workflow_type: "order".into(),
        task_queue: "orders".into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn namespaces_that_are_made_by_naming_them_have_an_end() {
    let stage = Stage::with(&[("server.namespaces_made_max", "3")]).await;
    let mut workflows = stage.workflows().await;
    for namespace in ["one", "two", "three", "one", "default"] {
        workflows.start_workflow(start(namespace)).await.unwrap();
    }

    let refused = workflows.start_workflow(start("four")).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    assert!(refused.message().contains("kagzi ns create four"), "{refused}");
    workflows.start_workflow(start("two")).await.expect("those that are there go on");
    let create = v1::CreateNamespaceRequest { namespace_id: "four".into(), ..Default::default() };
    stage.admin().await.create_namespace(create).await.unwrap();
    workflows.start_workflow(start("four")).await.expect("somebody created it");
    stage.close().await;
}

#[tokio::test]
async fn workers_that_are_online_have_an_end_per_namespace() {
    let stage = Stage::with(&[("worker.online_max", "2")]).await;
    let mut workers = stage.workers().await;
    let register = |namespace: &str| v1::RegisterWorkerRequest {
        namespace_id: namespace.into(),
        task_queue: "orders".into(),
        workflow_types: vec!["order".into()],
        ..Default::default()
    };
    let first = workers.register_worker(register("shop")).await.unwrap().into_inner().worker_id;
    workers.register_worker(register("shop")).await.unwrap();

    let refused = workers.register_worker(register("shop")).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("worker.online_max"), "{refused}");
    workers.register_worker(register("neighbour")).await.expect("others have their own");
    let leave =
        v1::DeregisterWorkerRequest { namespace_id: "shop".into(), worker_id: first, ..Default::default() };
    workers.deregister_worker(leave).await.unwrap();
    workers.register_worker(register("shop")).await.expect("a place became free");
    stage.close().await;
}

#[tokio::test]
async fn schedules_have_an_end_per_namespace_and_the_repeat_of_one_is_answered() {
    let stage = Stage::with(&[("scheduler.schedules_max", "2")]).await;
    let mut schedules = ScheduleServiceClient::new(stage.channel().await);
    let create = |namespace: &str, id: &str| v1::CreateScheduleRequest {
        namespace_id: namespace.into(),
        schedule_id: id.into(),
        spec: Some(v1::ScheduleSpec {
            interval_ms: 3_600_000,
            workflow_type: "order".into(),
            task_queue: "orders".into(),
            ..Default::default()
        }),
        ..Default::default()
    };
    for id in ["one", "two", "one"] {
        schedules.create_schedule(create("shop", id)).await.unwrap();
    }

    let refused = schedules.create_schedule(create("shop", "three")).await.unwrap_err();

    assert_eq!(Reason::of(&refused), Some(Reason::QuotaExceeded), "{refused}");
    assert!(refused.message().contains("scheduler.schedules_max"), "{refused}");
    schedules.create_schedule(create("other", "three")).await.expect("another namespace has its own");
    stage.close().await;
}

#[tokio::test]
async fn a_namespace_and_its_limit_are_made_together() {
    let stage = Stage::open().await;
    let mut admin = stage.admin().await;
    let values = Some(v1::NamespaceValues { max_concurrent: Some(7), ..Default::default() });
    let create = v1::CreateNamespaceRequest { namespace_id: "shop".into(), values };

    let made = admin.create_namespace(create.clone()).await.unwrap().into_inner().namespace.unwrap();
    let again = admin.create_namespace(create).await.unwrap_err();
    let queues = v1::ListQueuesRequest { namespace_id: "shop".into(), ..Default::default() };
    let gate = admin.list_queues(queues).await.unwrap().into_inner().namespace_gate.unwrap();

    assert_eq!((made.max_concurrent, gate.max_concurrent), (Some(7), Some(7)));
    assert_eq!(Reason::of(&again), Some(Reason::NamespaceExists), "{again}");
    stage.close().await;
}
