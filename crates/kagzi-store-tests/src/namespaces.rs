//! Nothing crosses a namespace.

use kagzi_model::{
    Author, Command, ControlRejection, Defaults, FAILURE_HANDLER, LeaseRef, Name, NamespaceChange,
    NamespaceCommand, Rejection, Reply, RetryPolicy, RunKey, Started, State, Timeouts, WorkerId, act,
};
use kagzi_store::{Direction, PageRequest, Register, RegistryError, RunFilter, ServerControls, WorkerFilter};
use uuid::Uuid;

use crate::{Stage, TYPE};

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
    assert_eq!((workers.rows.len(), total.count), (0, 0));
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
        foreign.report(act::Renew { until: kagzi_model::Timestamp::MAX }),
        RunKey::new(namespace.clone(), run).order(Author::new("tester", "mine"), act::Cancel),
        RunKey::new(namespace.clone(), run).order(Author::new("tester", ""), act::Resume { request: None }),
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

pub async fn the_default_namespace_exists_always(stage: Stage) {
    let default = stage.store.namespace(&"default".into()).await.unwrap().expect("it exists");

    assert_eq!((default.version, default.disabled), (1, None));
}

pub async fn a_namespace_is_made_by_its_first_use(stage: Stage) {
    assert_eq!(stage.store.namespace(&stage.namespace).await.unwrap(), None);

    stage.start("order-1").await;

    let made = stage.store.namespace(&stage.namespace).await.unwrap().expect("the start made it");
    assert_eq!((made.version, made.created_at), (1, stage.now()));
}

pub async fn an_unknown_namespace_is_refused_where_the_server_says_so(stage: Stage) {
    stage.store.configure(ServerControls { create_namespaces: false, ..ServerControls::default() });
    let namespace = stage.namespace.clone();
    let register = || Register { id: WorkerId(Uuid::now_v7()), registration: stage.registration(&[TYPE], 1) };

    let start = stage.apply(Command::start(stage.new_run("order-1"))).await;
    let worker = stage.worker(register()).await.unwrap_err();

    assert_eq!(start, Err(Rejection::NamespaceUnknown { namespace: namespace.clone() }));
    assert_eq!(worker, RegistryError::UnknownNamespace(namespace));
    let create = NamespaceCommand::Create(NamespaceChange::default());
    stage.change(create.clone()).await.unwrap();
    stage.start("order-1").await;
    stage.worker(register()).await.unwrap();
    assert_eq!(stage.change(create).await, Err(ControlRejection::Exists(stage.namespace.clone())));
}

pub async fn a_changed_namespace_reads_back_as_it_was_answered(stage: Stage) {
    let change = NamespaceChange {
        description: Some("the shop's own".into()),
        defaults: Defaults {
            retry: RetryPolicy { maximum_attempts: Some(3), ..RetryPolicy::default() },
            timeouts: Timeouts { execution_ms: Some(60_000), ..Timeouts::default() },
        },
        retention_ms: Some(86_400_000),
        handler_queue: Some("alerts".into()),
        ..NamespaceChange::default()
    };
    let created = stage.change(NamespaceCommand::Create(change)).await.unwrap();
    assert_eq!(stage.store.namespace(&stage.namespace).await.unwrap().as_ref(), Some(&created));
    stage.pass_ms(5);

    let disable = NamespaceCommand::Disable { by: "ada".into(), note: "unpaid".into() };
    let disabled = stage.change(disable).await.unwrap();

    assert_eq!(stage.store.namespace(&stage.namespace).await.unwrap().as_ref(), Some(&disabled));
    assert_eq!((disabled.version, disabled.updated_at), (created.version + 1, stage.now()));
    assert_eq!(disabled.disabled.unwrap().since, stage.now());
    let missing = stage.change(NamespaceCommand::Enable).await.unwrap();
    assert_eq!(missing.disabled, None);
}

pub async fn namespaces_are_listed_by_name(stage: Stage) {
    for name in ["b", "a", "c"] {
        let mut start = stage.new_run("order-1");
        start.namespace = format!("{}-{name}", stage.namespace).into();
        stage.start_with(start).await;
    }
    let named = |name: &str| Name::from(format!("{}-{name}", stage.namespace));

    let mut after = Some(stage.namespace.clone());
    let mut listed = Vec::new();
    while listed.len() < 3 {
        let page = stage.store.namespaces(after.as_ref(), 2).await.unwrap();
        listed.extend(page.iter().map(|row| row.name.clone()));
        after = listed.last().cloned();
    }

    assert_eq!(listed[..3], [named("a"), named("b"), named("c")]);
}

pub async fn a_disabled_namespace_takes_no_new_runs_and_finishes_those_it_has(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let (first, second) = (stage.start("order-1").await, stage.start("order-2").await);
    let lease = standing.next().await.lease();

    stage.change(NamespaceCommand::Disable { by: "ada".into(), note: "unpaid".into() }).await.unwrap();
    let refused = stage.apply(Command::start(stage.new_run("order-3"))).await.unwrap_err();
    stage.ok(stage.complete(&lease)).await;
    let next = standing.next().await;
    stage.ok(stage.complete(&next.lease())).await;

    assert!(refused.to_string().contains("is disabled by ada: unpaid"), "{refused}");
    assert_eq!(next.run.id, second);
    for run in [first, second] {
        assert_eq!(stage.run(run).await.state, State::Completed);
    }
    stage.change(NamespaceCommand::Enable).await.unwrap();
    stage.start("order-3").await;
}

pub async fn the_repeat_of_a_start_is_answered_in_a_disabled_namespace(stage: Stage) {
    let start = stage.new_run("order-1");
    let run = stage.start_with(start.clone()).await;

    stage.change(NamespaceCommand::Disable { by: "ada".into(), note: String::new() }).await.unwrap();
    let again = stage.apply(Command::start(start)).await;

    assert_eq!(again, Ok(Reply::Started(Started { run, existed: true })));
}

pub async fn a_run_inherits_field_by_field_from_its_namespace_and_the_server(stage: Stage) {
    let retry = |maximum_attempts, initial_interval_ms, maximum_interval_ms| RetryPolicy {
        maximum_attempts,
        initial_interval_ms,
        maximum_interval_ms,
        ..RetryPolicy::default()
    };
    let server = Defaults { retry: retry(Some(9), Some(9), Some(90_000)), timeouts: Timeouts::default() };
    stage.store.configure(ServerControls { defaults: server, ..ServerControls::default() });
    let timeouts =
        Timeouts { execution_ms: Some(60_000), heartbeat_ms: Some(40_000), start_to_close_ms: Some(5_000) };
    let defaults = Defaults { retry: retry(Some(7), Some(7), None), timeouts: timeouts.clone() };
    let change = NamespaceChange { defaults, ..NamespaceChange::default() };
    stage.change(NamespaceCommand::Create(change)).await.unwrap();
    let mut start = stage.new_run("order-1");
    start.options.retry = retry(Some(2), None, None);

    let run = stage.start_with(start).await;

    let row = stage.run(run).await;
    assert_eq!(row.options.retry, retry(Some(2), Some(7), Some(90_000)));
    assert_eq!(row.options.timeouts, timeouts);
    assert_eq!(row.deadline_at, Some(stage.now().plus_ms(60_000)));
    // The lease is as long as the namespace's heartbeat timeout says.
    let lease = stage.stand_by(1).await.next().await.run.lease().unwrap().clone();
    assert_eq!(lease.until, stage.now().plus_ms(40_000));
}

pub async fn the_namespace_says_where_its_failure_handler_starts_when_no_worker_does(stage: Stage) {
    let handler_queue = Some(Name::from("alerts"));
    let change = NamespaceChange { handler_queue, ..NamespaceChange::default() };
    stage.change(NamespaceCommand::Create(change)).await.unwrap();
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;

    stage.ok(stage.fail(&standing.next().await.lease())).await;

    let business_id = format!("system-failure-{run}").into();
    let handler = stage.store.run_by_business(&stage.namespace, &business_id).await.unwrap();
    let handler = stage.run(handler.expect("a handler was started")).await;
    assert_eq!((&*handler.task_queue, &*handler.workflow_type), ("alerts", FAILURE_HANDLER));
}
