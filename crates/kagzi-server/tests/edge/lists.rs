//! Every list is asked in the same way, goes both ways and can be counted.

use kagzi_proto::{
    Reason,
    v1::{self, schedule_service_client::ScheduleServiceClient},
};

use crate::stage::Stage;

/// Reads a list of seven rows in pages of three, forwards and back again, through the same five fields.
macro_rules! both_ways {
    ($client:expr, $method:ident, $request:expr, $rows:ident, $name:expr) => {{
        let mut client = $client;
        let (mut there, mut back, mut tokens) = (Vec::new(), Vec::new(), vec![String::new()]);
        let mut last = String::new();
        loop {
            let mut request = $request;
            (request.page_size, request.include_total) = (3, true);
            request.page_token = tokens.last().cloned().unwrap();
            let page = client.$method(request).await.unwrap().into_inner();
            assert_eq!((page.total_count, page.total_capped), (7, false), stringify!($method));
            assert_eq!(page.prev_page_token.is_empty(), tokens.len() == 1, stringify!($method));
            there.push(page.$rows.iter().map($name).collect::<Vec<String>>());
            if page.next_page_token.is_empty() {
                last = if last.is_empty() { page.prev_page_token } else { last };
                break;
            }
            tokens.push(page.next_page_token);
        }
        assert_eq!(there.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 1], stringify!($method));
        while !last.is_empty() {
            let mut request = $request;
            (request.page_size, request.page_token) = (3, last);
            let page = client.$method(request).await.unwrap().into_inner();
            assert!(!page.next_page_token.is_empty(), "there is a page behind it");
            assert!(page.$rows.len() <= 3, "a page has three rows");
            back.insert(0, page.$rows.iter().map($name).collect::<Vec<String>>());
            last = page.prev_page_token;
        }
        assert_eq!(back.concat(), there[..2].concat(), stringify!($method));
        let mut request = $request;
        (request.page_size, request.page_token) = (3, "nonsense".into());
        let refused = client.$method(request).await.unwrap_err();
        assert_eq!(Reason::of(&refused), Some(Reason::FieldInvalid), "{refused}");
    }};
}

#[tokio::test]
async fn every_list_goes_both_ways_and_is_counted() {
    let stage = Stage::open().await;
    let (mut workflows, mut workers) = (stage.workflows().await, stage.workers().await);
    let mut schedules = ScheduleServiceClient::new(stage.channel().await);
    let mut admin = stage.admin().await;
    for n in 0..7 {
        let start = v1::StartWorkflowRequest {
            business_id: format!("order-{n}"),
            workflow_type: "order".into(),
            task_queue: format!("queue-{n}"),
            ..Default::default()
        };
        workflows.start_workflow(start).await.unwrap();
        schedules.create_schedule(schedule(&format!("daily-{n}"), "")).await.unwrap();
        if n > 0 {
            let create = v1::CreateNamespaceRequest { namespace_id: format!("shop-{n}"), values: None };
            admin.create_namespace(create).await.unwrap();
        }
        let register = v1::RegisterWorkerRequest {
            namespace_id: "workers".into(),
            task_queue: "orders".into(),
            workflow_types: vec!["order".into()],
            ..Default::default()
        };
        workers.register_worker(register).await.unwrap();
    }
    // Workers made an eighth namespace; the default one is the first.
    let namespaces = admin.list_namespaces(v1::ListNamespacesRequest::default()).await.unwrap().into_inner();
    assert_eq!(namespaces.namespaces.len(), 8);

    both_ways!(
        workflows.clone(),
        list_workflow_runs,
        v1::ListWorkflowRunsRequest::default(),
        workflow_runs,
        |row| row.run_id.clone()
    );
    both_ways!(schedules, list_schedules, v1::ListSchedulesRequest::default(), schedules, |row| {
        row.schedule_id.clone()
    });
    both_ways!(
        workers,
        list_workers,
        v1::ListWorkersRequest { namespace_id: "workers".into(), ..Default::default() },
        workers,
        |row| row.worker_id.clone()
    );
    both_ways!(admin.clone(), list_queues, v1::ListQueuesRequest::default(), queues, |row| {
        row.task_queue.clone()
    });
    let run_id = with_steps(&stage, 5).await;
    both_ways!(
        workflows.clone(),
        list_run_events,
        v1::ListRunEventsRequest { run_id: run_id.clone(), ..Default::default() },
        events,
        |row| row.sequence.to_string()
    );
    let with_steps = with_steps(&stage, 7).await;
    both_ways!(
        workflows,
        list_step_attempts,
        v1::ListStepAttemptsRequest { run_id: with_steps.clone(), ..Default::default() },
        step_attempts,
        |row| format!("{:?}", row.step)
    );
    stage.close().await;
}

/// A run whose history is its start, its claim and so many results.
async fn with_steps(stage: &Stage, steps: u32) -> String {
    let (mut workflows, mut workers) = (stage.workflows().await, stage.workers().await);
    let register = v1::RegisterWorkerRequest {
        task_queue: format!("long-{steps}"),
        workflow_types: vec!["long".into()],
        ..Default::default()
    };
    let worker_id = workers.register_worker(register).await.unwrap().into_inner().worker_id;
    let start = v1::StartWorkflowRequest {
        workflow_type: "long".into(),
        task_queue: format!("long-{steps}"),
        ..Default::default()
    };
    let run_id = workflows.start_workflow(start).await.unwrap().into_inner().run_id;
    let poll = v1::PollActivityRequest {
        worker_id,
        task_queue: format!("long-{steps}"),
        supported_workflow_types: vec!["long".into()],
        ..Default::default()
    };
    let lease_epoch = workers.poll_activity(poll).await.unwrap().into_inner().lease_epoch;
    for position in 0..steps {
        let done = v1::CompleteStepRequest {
            run_id: run_id.clone(),
            step_id: format!("step-{position}"),
            lease_epoch,
            position,
            ..Default::default()
        };
        workers.complete_step(done).await.unwrap();
    }
    run_id
}

#[tokio::test]
async fn namespaces_go_both_ways_by_name() {
    let stage = Stage::open().await;
    let mut admin = stage.admin().await;
    for n in 1..7 {
        let create = v1::CreateNamespaceRequest { namespace_id: format!("shop-{n}"), values: None };
        admin.create_namespace(create).await.unwrap();
    }

    both_ways!(admin, list_namespaces, v1::ListNamespacesRequest::default(), namespaces, |row| {
        row.namespace_id.clone()
    });
    stage.close().await;
}

fn schedule(id: &str, user: &str) -> v1::CreateScheduleRequest {
    v1::CreateScheduleRequest {
        schedule_id: id.into(),
        spec: Some(v1::ScheduleSpec {
            cron: "0 0 1 1 *".into(),
            workflow_type: "order".into(),
            task_queue: "orders".into(),
            user_id: user.into(),
            ..Default::default()
        }),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_schedule_says_for_whom_its_runs_are() {
    let stage = Stage::open().await;
    let mut schedules = ScheduleServiceClient::new(stage.channel().await);
    for (id, user) in [("a", "ann"), ("b", ""), ("c", "bob"), ("d", "ann"), ("e", "ann")] {
        schedules.create_schedule(schedule(id, user)).await.unwrap();
    }

    let trigger = v1::TriggerScheduleRequest { schedule_id: "a".into(), ..Default::default() };
    schedules.trigger_schedule(trigger).await.unwrap();
    let anns = v1::ListWorkflowRunsRequest { user_id: "ann".into(), ..Default::default() };
    let runs = stage.workflows().await.list_workflow_runs(anns).await.unwrap().into_inner().workflow_runs;
    assert_eq!((runs.len(), runs[0].user_id.as_str(), runs[0].labels.len()), (1, "ann", 0));

    let get = v1::GetScheduleRequest { schedule_id: "a".into(), ..Default::default() };
    let spec = schedules.get_schedule(get).await.unwrap().into_inner().schedule.unwrap().spec.unwrap();
    assert_eq!((spec.user_id.as_str(), spec.labels.len()), ("ann", 0));

    let mut request = v1::ListSchedulesRequest {
        user_id: "ann".into(),
        page_size: 2,
        include_total: true,
        ..Default::default()
    };
    let first = schedules.list_schedules(request.clone()).await.unwrap().into_inner();
    request.page_token = first.next_page_token;
    let second = schedules.list_schedules(request.clone()).await.unwrap().into_inner();
    request.page_token = second.prev_page_token.clone();
    let back = schedules.list_schedules(request).await.unwrap().into_inner();
    let ids =
        |page: &[v1::Schedule]| page.iter().map(|row| row.schedule_id.clone()).collect::<Vec<_>>().join(" ");
    assert_eq!((ids(&first.schedules), first.total_count), ("e d".into(), 3));
    assert_eq!((ids(&second.schedules), second.next_page_token.as_str()), ("a".into(), ""));
    assert_eq!(ids(&back.schedules), "e d");
    stage.close().await;
}
