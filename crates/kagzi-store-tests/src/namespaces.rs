//! Nothing crosses a namespace.

use kagzi_model::{Command, LeaseRef, Name, Rejection};
use kagzi_store::{Direction, PageRequest, RunFilter, WorkerFilter};

use crate::Stage;

fn elsewhere(stage: &Stage) -> Name {
    format!("{}-elsewhere", stage.namespace).into()
}

pub async fn one_business_id_names_two_runs_in_two_namespaces(stage: Stage) {
    let here = stage.start("order-1").await;
    let mut start = stage.new_run("order-1");
    start.namespace = elsewhere(&stage);
    start.workflow_type = "refund".into();

    let there = stage.start_with(start).await;

    let business_id = "order-1".into();
    let find = async |namespace: &Name| stage.store.run_by_business(namespace, &business_id).await.unwrap();
    assert_eq!(find(&stage.namespace).await, Some(here));
    assert_eq!(find(&elsewhere(&stage)).await, Some(there));
}

pub async fn reads_from_another_namespace_see_nothing(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    standing.next().await;
    let (there, store) = (elsewhere(&stage), &stage.store);
    let page = PageRequest { from: None, direction: Direction::Next, limit: 10 };

    assert_eq!(store.run(&there, run).await.unwrap(), None);
    assert_eq!(store.run_by_business(&there, &"order-1".into()).await.unwrap(), None);
    assert!(store.events(&there, run, 0, 10).await.unwrap().is_empty());
    assert!(store.runs_by_prefix(&there, &run.0.simple().to_string()).await.unwrap().is_empty());
    assert!(store.runs(&there, &RunFilter::default(), &page).await.unwrap().rows.is_empty());
    assert_eq!(store.worker_by_id(&there, standing.worker).await.unwrap(), None);
    let digits = standing.worker.0.simple().to_string();
    assert!(store.workers_by_prefix(&there, &digits).await.unwrap().is_empty());
    let (workers, total) = store.workers(&there, &WorkerFilter::default(), &page).await.unwrap();
    assert_eq!((workers.rows.len(), total), (0, 0));
}

pub async fn commands_from_another_namespace_find_nothing(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let namespace = elsewhere(&stage);
    let foreign = LeaseRef { namespace: namespace.clone(), ..standing.next().await.lease() };
    let before = stage.events(run).await;

    let commands = vec![
        stage.record(&foreign, "a", b"1"),
        stage.complete(&foreign),
        Command::Renew { lease: foreign.clone(), until: kagzi_model::Timestamp::MAX },
        Command::Cancel { namespace: namespace.clone(), run, reason: "mine".into() },
        Command::Resume { namespace: namespace.clone(), run },
    ];
    let outcomes = stage.apply_all(commands).await;

    let missing = Err(Rejection::NotFound { run, namespace });
    assert!(outcomes.iter().all(|outcome| *outcome == missing), "{outcomes:?}");
    assert_eq!(stage.events(run).await, before);
}

pub async fn a_worker_gets_no_run_of_another_namespace(stage: Stage) {
    let mut standing = stage.stand_by(10).await;
    let mut start = stage.new_run("order-1");
    start.namespace = elsewhere(&stage);

    let foreign = stage.start_with(start).await;
    stage.settle().await;

    assert!(standing.ready().is_none());
    let events = stage.store.events(&elsewhere(&stage), foreign, 0, 10).await.unwrap();
    assert_eq!(events.len(), 1);
}
