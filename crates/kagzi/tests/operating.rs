//! What operators do through the SDK: namespaces, queues and workers.

use std::time::Duration;

use kagzi::admin::{NamespaceField, NamespaceSettings, RegisteredWorker, WorkerStatus};
use kagzi::client::{RunStatus, Timeouts};
use kagzi::error::Code;
use kagzi::testing::TestEngine;
use kagzi::{Error, RetryPolicy, WorkflowContext};

async fn greet(_: WorkflowContext, name: String) -> anyhow::Result<String> {
    Ok(format!("hello {name}"))
}

fn refusal(error: Error) -> (Code, String) {
    let Error::Refused(refusal) = error else { panic!("not a refusal: {error}") };
    (refusal.code, refusal.message)
}

#[tokio::test]
async fn a_namespace_is_created_changed_disabled_and_enabled() {
    let engine = TestEngine::start().await;
    let admin = engine.client().admin().by("ada");
    let day = Duration::from_secs(24 * 3600);
    let settings = NamespaceSettings::default()
        .description("orders and refunds")
        .retry_policy(RetryPolicy::default().maximum_attempts(3))
        .timeouts(Timeouts { execution: Some(day), ..Default::default() })
        .retention(30 * day)
        .max_concurrent(50)
        .failure_handler_queue("alerts");

    let made = admin.create_namespace("shop", settings.clone()).await.unwrap();
    let again = admin.create_namespace("shop", settings).await.unwrap_err();
    let settings =
        NamespaceSettings::default().clear(NamespaceField::MaxConcurrent).clear(NamespaceField::Retention);
    let changed = admin.update_namespace("shop", settings.retention(day)).await.unwrap();
    let disabled = admin.disable_namespace("shop", "unpaid").await.unwrap();
    let start = async || engine.client().namespace("shop").workflow("greet", "q", "x").id("one").await;
    let refused = start().await.err().unwrap();
    let enabled = admin.enable_namespace("shop").await.unwrap();

    assert_eq!((made.description.as_str(), made.max_concurrent), ("orders and refunds", Some(50)));
    assert_eq!(made.retention, Some(30 * day));
    assert_eq!(made.retry_policy.maximum_attempts, Some(3));
    assert_eq!(made.timeouts.execution, Some(day));
    assert_eq!(refusal(again).0, Code::AlreadyExists);
    assert_eq!((changed.max_concurrent, changed.retention), (None, Some(day)));
    assert_eq!(changed.failure_handler_queue.as_deref(), Some("alerts"), "what is not named stays");
    assert_eq!((disabled.disabled_by.as_deref(), disabled.disabled_note.as_str()), (Some("ada"), "unpaid"));
    assert!(refusal(refused).1.contains("unpaid"));
    assert!(!enabled.disabled);
    start().await.unwrap();
    assert_eq!(admin.namespace("shop").await.unwrap(), enabled);
    engine.close().await;
}

#[tokio::test]
async fn namespaces_are_listed_by_name_in_one_piece_and_page_by_page() {
    let engine = TestEngine::start().await;
    let admin = engine.client().admin();
    for number in 0..60 {
        admin.create_namespace(format!("tenant-{number:02}"), NamespaceSettings::default()).await.unwrap();
    }

    let all: Vec<_> =
        admin.namespaces().all().await.unwrap().into_iter().map(|one| one.namespace_id).collect();
    let by_seven = admin.namespaces().page_size(7);
    let first = by_seven.page("").await.unwrap();
    let second = by_seven.page(first.next.unwrap()).await.unwrap();

    let mut expected: Vec<_> = (0..60).map(|number| format!("tenant-{number:02}")).collect();
    expected.insert(0, "default".into());
    assert_eq!(all, expected);
    let pages = first.rows.into_iter().chain(second.rows);
    assert_eq!(pages.map(|one| one.namespace_id).collect::<Vec<_>>(), expected[..14]);
    engine.close().await;
}

#[tokio::test]
async fn a_paused_queue_or_type_waits_and_its_depth_is_told() {
    let engine = TestEngine::start().await;
    let admin = engine.client().admin().by("ada");
    let orders = admin.queue("orders");
    assert!(orders.describe().await.unwrap().is_none());
    engine
        .work("orders", |worker| {
            worker.register("greet", greet);
            worker.register("other", greet);
        })
        .await;

    let gate = orders.workflow_type("greet").pause("deploy").await.unwrap();
    let held = engine.client().workflow("greet", "orders", "ada").await.unwrap();
    let free = engine.client().workflow("other", "orders", "bob").await.unwrap();
    assert_eq!(free.result::<String>().await.unwrap(), "hello bob");
    let queue = orders.describe().await.unwrap().unwrap();
    let limited = orders.limit(5).await.unwrap();
    let every = admin.every_queue().limit(9).await.unwrap();
    let all = admin.queues().all().await.unwrap();

    assert_eq!(
        (gate.paused, gate.paused_by.as_deref(), gate.paused_note.as_str()),
        (true, Some("ada"), "deploy")
    );
    assert_eq!((queue.depth.ready, queue.depth.leased, queue.workers), (1, 0, 1));
    let kind = queue.types.iter().find(|kind| kind.workflow_type == "greet").unwrap();
    assert!(kind.gate.paused && kind.depth.oldest_ready_at.is_some());
    assert_eq!(held.describe().await.unwrap().status, RunStatus::Pending);
    assert_eq!((limited.max_concurrent, every.max_concurrent), (Some(5), Some(9)));
    assert_eq!(all.len(), 1);
    assert_eq!(admin.namespace_gate().await.unwrap().max_concurrent, Some(9));

    orders.workflow_type("greet").resume().await.unwrap();
    assert_eq!(held.result::<String>().await.unwrap(), "hello ada");
    assert_eq!(orders.unlimited().await.unwrap().max_concurrent, None);
    engine.close().await;
}

#[tokio::test]
async fn a_worker_is_listed_drained_and_taken_offline() {
    let engine = TestEngine::start().await;
    let admin = engine.client().admin();
    for queue in ["one", "two"] {
        engine
            .work(queue, |worker| {
                worker.register("greet", greet);
            })
            .await;
    }

    // A worker registers when its stream opens, which is soon.
    let workers = loop {
        let workers = admin.workers().all().await.unwrap();
        if workers.len() == 2 {
            break workers;
        }
    };
    let [newest, oldest] = workers.as_slice() else { panic!("{workers:?}") };
    let drained = admin.drain_worker(&newest.worker_id).await.unwrap();
    let taken = admin.take_worker_offline(&oldest.worker_id).await.unwrap();
    let unknown = admin.worker("00000000-0000-7000-8000-000000000000").await.unwrap_err();

    assert_eq!(drained.worker_id, newest.worker_id);
    assert_ne!(drained.status, newest.status);
    assert_eq!((taken.worker.worker_id.as_str(), taken.released), (oldest.worker_id.as_str(), 0));
    assert_ne!(taken.worker.status, oldest.status);
    assert_eq!(refusal(unknown).0, Code::NotFound);
    let ids =
        |workers: &[RegisteredWorker]| workers.iter().map(|one| one.worker_id.clone()).collect::<Vec<_>>();
    let offline = admin.workers().status(WorkerStatus::Offline).all().await.unwrap();
    // The drained one had nothing to finish, so it may have left as well.
    assert!(ids(&offline).contains(&oldest.worker_id), "{offline:?}");
    let queue = admin.workers().task_queue(&newest.task_queue).all().await.unwrap();
    assert_eq!(ids(&queue), std::slice::from_ref(&newest.worker_id));
    let one_by_one = admin.workers().page_size(1);
    let first = one_by_one.page("").await.unwrap();
    let second = one_by_one.page(first.next.clone().unwrap()).await.unwrap();
    let back = one_by_one.page(second.previous.unwrap()).await.unwrap();
    assert_eq!((ids(&second.rows), ids(&back.rows)), (ids(&workers[1..]), ids(&first.rows)));
    engine.close().await;
}

#[tokio::test]
async fn a_worker_of_a_namespace_that_is_not_there_ends_with_an_error_instead_of_trying_for_ever() {
    let folder = std::env::temp_dir().join(format!("kagzi-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let kagzi =
        kagzi::Embedded::builder().create_namespaces(false).open(folder.join("one.db")).await.unwrap();
    let worker = kagzi.worker("q").namespace("nowhere").register("greet", greet);

    let ended = tokio::time::timeout(Duration::from_secs(60), worker.run()).await.expect("it ends");

    let (code, message) = refusal(ended.unwrap_err());
    assert_eq!(code, Code::NotFound, "{message}");
    assert!(message.contains("nowhere"), "{message}");
    kagzi.close().await;
    std::fs::remove_dir_all(&folder).unwrap();
}
