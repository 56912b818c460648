//! Everything that administers namespaces, queues and workers.

use kagzi_faults::{Pace, Script, Stage, stage};
use kagzi_proto::v1;

use super::{huge, long};
use crate::bad_input::{Refused, all_name_their_field};

async fn bad_administration(stage: &Stage) -> Vec<Refused> {
    let create = async |request| stage.admin().create_namespace(request).await.map(|_| ());
    let update = async |request| stage.admin().update_namespace(request).await.map(|_| ());
    let with = async |change: &dyn Fn(&mut v1::NamespaceValues)| {
        let mut values = v1::NamespaceValues::default();
        change(&mut values);
        let values = Some(values);
        create(v1::CreateNamespaceRequest { namespace_id: "n".into(), values: values.clone() }).await?;
        update(v1::UpdateNamespaceRequest { namespace_id: "default".into(), values, clear: vec![] }).await
    };
    let pause = async |request| stage.admin().pause_queue(request).await.map(|_| ());
    let limit = async |request| stage.admin().limit_queue(request).await.map(|_| ());
    let resume = async |request| stage.admin().resume_queue(request).await.map(|_| ());
    let mut refused: Vec<Refused> = Vec::new();
    for name in [long(), huge(), "a\nb".into(), "\u{0}".into()] {
        let name = || name.clone();
        let namespace = || v1::PauseQueueRequest { namespace_id: name(), ..Default::default() };
        let disable = v1::DisableNamespaceRequest { namespace_id: name(), ..Default::default() };
        let enable = v1::EnableNamespaceRequest { namespace_id: name() };
        let get = v1::GetNamespaceRequest { namespace_id: name() };
        let clear = v1::UpdateNamespaceRequest { clear: vec![77], ..v1::UpdateNamespaceRequest::default() };
        refused.extend([
            ("name", "namespace_id is", {
                create(v1::CreateNamespaceRequest { namespace_id: name(), values: None }).await
            }),
            ("name", "namespace_id is", stage.admin().get_namespace(get).await.map(|_| ())),
            ("name", "namespace_id is", stage.admin().disable_namespace(disable).await.map(|_| ())),
            ("name", "namespace_id is", stage.admin().enable_namespace(enable).await.map(|_| ())),
            ("name", "namespace_id is", pause(namespace()).await),
            ("field", "clear is", update(clear).await),
            ("queue", "task_queue is", {
                pause(v1::PauseQueueRequest { task_queue: name(), ..Default::default() }).await
            }),
            ("queue", "task_queue is", {
                resume(v1::ResumeQueueRequest { task_queue: name(), ..Default::default() }).await
            }),
            ("queue", "task_queue is", {
                limit(v1::LimitQueueRequest { task_queue: name(), ..Default::default() }).await
            }),
            ("type", "workflow_type is", {
                let task_queue = "q".to_owned();
                pause(v1::PauseQueueRequest { task_queue, workflow_type: name(), ..Default::default() }).await
            }),
            ("who", "by is", pause(v1::PauseQueueRequest { by: name(), ..Default::default() }).await),
            ("handler", "failure_handler_queue is", with(&|v| v.failure_handler_queue = Some(name())).await),
        ]);
    }
    let policy =
        |policy: v1::RetryPolicy| move |v: &mut v1::NamespaceValues| v.retry_policy = Some(policy.clone());
    let times = |times: v1::TimeoutConfig| move |v: &mut v1::NamespaceValues| v.timeouts = Some(times);
    refused.extend([
        ("no name", "namespace_id is", create(v1::CreateNamespaceRequest::default()).await),
        ("description", "description is", with(&|v| v.description = Some("d".repeat(4_097))).await),
        ("no retention", "retention_ms is 0", with(&|v| v.retention_ms = Some(0)).await),
        ("retention", "retention_ms is -1", with(&|v| v.retention_ms = Some(-1)).await),
        ("short retention", "it must be at least 120000 ms", with(&|v| v.retention_ms = Some(119_999)).await),
        ("retention", "retention_ms is", with(&|v| v.retention_ms = Some(i64::MAX)).await),
        ("limit", "max_concurrent is 0", with(&|v| v.max_concurrent = Some(0)).await),
        ("limit", "max_concurrent is", with(&|v| v.max_concurrent = Some(u32::MAX)).await),
        (
            "no handler",
            "failure_handler_queue is",
            with(&|v| v.failure_handler_queue = Some("".into())).await,
        ),
        ("policy", "retry_policy", {
            with(&policy(v1::RetryPolicy { maximum_attempts: Some(0), ..Default::default() })).await
        }),
        ("policy", "retry_policy.backoff is -5", {
            with(&policy(v1::RetryPolicy { backoff: -5, ..Default::default() })).await
        }),
        ("policy", "retry_policy.preset is", {
            with(&policy(v1::RetryPolicy { preset: 77, ..Default::default() })).await
        }),
        ("timeouts", "start_to_close_timeout_seconds is 0", {
            with(&times(v1::TimeoutConfig { start_to_close_timeout_seconds: Some(0), ..Default::default() }))
                .await
        }),
        ("type without queue", "workflow_type is", {
            pause(v1::PauseQueueRequest { workflow_type: "t".into(), ..Default::default() }).await
        }),
        ("type without queue", "workflow_type is", {
            limit(v1::LimitQueueRequest { workflow_type: "t".into(), ..Default::default() }).await
        }),
        ("limit of none", "max_concurrent is 0", {
            limit(v1::LimitQueueRequest { max_concurrent: Some(0), ..Default::default() }).await
        }),
        ("limit of all", "max_concurrent is", {
            limit(v1::LimitQueueRequest { max_concurrent: Some(u32::MAX), ..Default::default() }).await
        }),
        ("note", "note is", {
            pause(v1::PauseQueueRequest { note: "n".repeat(1_025), ..Default::default() }).await
        }),
        ("note", "note is", {
            let request = v1::DisableNamespaceRequest { note: "n".repeat(1_025), ..Default::default() };
            stage.admin().disable_namespace(request).await.map(|_| ())
        }),
    ]);
    refused
}

#[tokio::test]
async fn bad_administration_is_refused_by_field_value_and_rule_and_changes_nothing() {
    let stage = stage!(Pace::Steady);
    let before = state(&stage).await;

    all_name_their_field(bad_administration(&stage).await);

    assert_eq!(state(&stage).await, before);
    let _worker = stage.worker(&[]).await;
    let run = stage.start(&Script::steps(&["a"])).await;
    stage.completed(&run).await;
    stage.close().await;
}

/// Everything that an operator can set.
async fn state(stage: &Stage) -> (v1::ListNamespacesResponse, v1::ListQueuesResponse) {
    let namespaces = stage.admin().list_namespaces(v1::ListNamespacesRequest::default()).await.unwrap();
    let queues = stage.admin().list_queues(v1::ListQueuesRequest::default()).await.unwrap();
    (namespaces.into_inner(), queues.into_inner())
}
