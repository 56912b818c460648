//! Filters: each lists what its rule says, in every order, page by page and both ways.

use kagzi_model::{Name, Run, RunId, Status, act, schedule::ScheduledBy};
use kagzi_store::{Direction, OrderBy, PageRequest, RunFilter, RunOrder, TimeRange};

use crate::{Stage, TYPE};

/// Thirty runs in every state, with and without labels and business ids, some at the same moment.
async fn many_runs(stage: &Stage) -> Vec<Run> {
    let mut standing = stage.stand_by(30).await;
    for number in 0..30 {
        let mut start =
            stage.new_run(&format!("{}-{number}", if number % 2 == 0 { "order" } else { "offer" }));
        if number % 5 == 0 {
            start.business_id = None;
        }
        if number % 7 == 0 {
            start.workflow_type = "refund".into();
        }
        if number % 6 == 0 {
            start.task_queue = "slow".into();
        }
        if number % 4 == 0 {
            let at = stage.now();
            start.options.scheduled = Some(ScheduledBy { schedule: "nightly".into(), at });
        }
        let tenant = |name: &str| (Name::from("tenant"), Name::from(name));
        let labels = [tenant(["acme", "globex"][number % 2]), ("tier".into(), "gold".into())];
        start.labels = labels.into_iter().take(number % 3).collect();
        stage.start_with(start).await;
        if number % 3 == 0 {
            stage.pass_one_tick();
        }
    }
    stage.settle().await;
    let mut number = 0;
    while let Some(assignment) = standing.ready() {
        let lease = assignment.lease();
        match number % 8 {
            0 | 1 => drop(stage.ok(stage.complete(&lease)).await),
            2 => drop(stage.ok(stage.fail(&lease)).await),
            3 => drop(stage.ok(stage.fail_step(&lease, "charge", 1)).await),
            4 => drop(stage.ok(stage.sleep(&lease, "nap", 60_000)).await),
            5 => drop(stage.ok(stage.cancel(lease.run)).await),
            6 => drop(stage.ok(lease.report(act::Block { message: "code changed".into() })).await),
            _ => {}
        }
        number += 1;
        if number % 2 == 0 {
            stage.pass_ms(1);
        }
    }
    assert!(number >= 16, "{number} runs were given out");
    stage.settle().await;
    let everything = PageRequest { from: None, direction: Direction::Next, limit: 1000 };
    stage.store.runs(&stage.namespace, &RunFilter::default(), &everything).await.unwrap().rows
}

fn filters(runs: &[Run]) -> Vec<RunFilter> {
    let all = RunFilter::default;
    let middle = runs[runs.len() / 2].created_at;
    let ended = runs.iter().filter_map(|run| run.finished_at).min();
    let label = |name: &str, value: &str| (Name::from(name), Name::from(value));
    let created = TimeRange { from: Some(middle), to: None };
    let mut filters: Vec<RunFilter> =
        Status::ALL.into_iter().map(|status| RunFilter { statuses: vec![status], ..all() }).collect();
    for reason in ["ready", "leased", "timer", "retry", "paused"] {
        filters.push(RunFilter { reason: Some(reason.into()), ..all() });
    }
    filters.extend([
        all(),
        RunFilter { statuses: vec![Status::Failed, Status::Running, Status::Completed], ..all() },
        RunFilter { statuses: vec![Status::Pending], reason: Some("retry".into()), ..all() },
        RunFilter { statuses: vec![Status::Completed], reason: Some("retry".into()), ..all() },
        RunFilter { workflow_type: Some(TYPE.into()), ..all() },
        RunFilter { workflow_type: Some("refund".into()), created, ..all() },
        RunFilter { task_queue: Some("slow".into()), ..all() },
        RunFilter { task_queue: Some("slow".into()), workflow_type: Some("refund".into()), ..all() },
        RunFilter { task_queue: Some("nowhere".into()), ..all() },
        RunFilter { workflow_type: Some(TYPE.into()), statuses: vec![Status::Completed], ..all() },
        RunFilter { error_code: Some("BROKEN".into()), ..all() },
        RunFilter { error_code: Some("GAVE_UP".into()), statuses: vec![Status::Failed], ..all() },
        RunFilter { business_id: Some("order-4".into()), ..all() },
        RunFilter { business_id: Some(runs[0].shown_id().into()), ..all() },
        RunFilter {
            business_id: runs.iter().find(|run| run.business_id.is_none()).map(|run| run.shown_id().into()),
            ..all()
        },
        RunFilter { business_id_prefix: Some("order-1".into()), ..all() },
        RunFilter { business_id_prefix: Some("o".into()), statuses: vec![Status::Completed], ..all() },
        RunFilter { labels: vec![label("tenant", "acme")], ..all() },
        RunFilter { labels: vec![label("tier", "gold"), label("tenant", "globex")], ..all() },
        RunFilter {
            labels: vec![label("tenant", "acme")],
            statuses: vec![Status::Completed, Status::Failed],
            ..all()
        },
        RunFilter { labels: vec![label("tenant", "nobody")], ..all() },
        RunFilter { schedule: Some("nightly".into()), ..all() },
        RunFilter { schedule: Some("nightly".into()), statuses: vec![Status::Completed], ..all() },
        RunFilter { schedule: Some("hourly".into()), ..all() },
        RunFilter { created, ..all() },
        RunFilter { created: TimeRange { from: None, to: Some(middle) }, ..all() },
        RunFilter { finished: TimeRange { from: ended, to: None }, ..all() },
        RunFilter { finished: TimeRange { from: None, to: ended.map(|at| at.plus_ms(2)) }, ..all() },
        RunFilter { finished: TimeRange { from: ended, to: ended }, statuses: vec![Status::Failed], ..all() },
    ]);
    filters
}

async fn walk(stage: &Stage, filter: &RunFilter, limit: usize) -> (Vec<RunId>, Vec<RunId>) {
    let (mut forward, mut backward) = (Vec::new(), Vec::new());
    let mut request = PageRequest { from: None, direction: Direction::Next, limit };
    loop {
        let page = stage.store.runs(&stage.namespace, filter, &request).await.unwrap();
        assert_eq!(page.has_prev, !forward.is_empty(), "{filter:?}");
        forward.extend(page.rows.iter().map(|run| run.id));
        let Some(last) = page.rows.last().filter(|_| page.has_next) else {
            backward.extend(page.rows.iter().map(|run| run.id));
            request.from = page.rows.first().and_then(|run| filter.order.cursor(run));
            break;
        };
        request.from = filter.order.cursor(last);
    }
    request.direction = Direction::Prev;
    while request.from.is_some() {
        let page = stage.store.runs(&stage.namespace, filter, &request).await.unwrap();
        backward.splice(0..0, page.rows.iter().map(|run| run.id));
        request.from = page.rows.first().filter(|_| page.has_prev).and_then(|run| filter.order.cursor(run));
    }
    (forward, backward)
}

pub async fn every_filter_lists_what_its_rule_says_in_every_order_and_both_ways(stage: Stage) {
    let runs = many_runs(&stage).await;
    assert_eq!(runs.len(), 30);

    let mut found = 0;
    for filter in filters(&runs) {
        for (by, ascending) in [
            (OrderBy::CreatedAt, false),
            (OrderBy::CreatedAt, true),
            (OrderBy::FinishedAt, false),
            (OrderBy::FinishedAt, true),
        ] {
            let filter = RunFilter { order: RunOrder { by, ascending }, ..filter.clone() };
            let mut expected: Vec<&Run> = runs.iter().filter(|run| filter.matches(run)).collect();
            expected.sort_by_key(|run| filter.order.cursor(run));
            if !ascending {
                expected.reverse();
            }
            let expected: Vec<RunId> = expected.iter().map(|run| run.id).collect();
            found += expected.len();

            for limit in [4, 1000] {
                let (forward, backward) = walk(&stage, &filter, limit).await;
                assert_eq!(forward, expected, "forward by {limit}: {filter:?}");
                assert_eq!(backward, expected, "backward by {limit}: {filter:?}");
            }
            let total = stage.store.count_runs(&stage.namespace, &filter).await.unwrap();
            assert_eq!((total.count, total.capped), (expected.len() as u64, false), "{filter:?}");
        }
    }
    // A test in which nothing is found proves nothing.
    assert!(found > 300, "{found}");
}

pub async fn a_label_finds_runs_by_its_last_value_only(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let mut start = stage.new_run("order-1");
    start.labels = [("stage".into(), "new".into())].into_iter().collect();
    let run = stage.start_with(start).await;
    let lease = standing.next().await.lease();
    let step = kagzi_model::StepRef { path: "label".into(), position: 0 };
    stage.ok(lease.report(act::SetLabel { step, name: "stage".into(), value: "paid".into() })).await;

    let with = async |value: &str| {
        let filter = RunFilter { labels: vec![("stage".into(), value.into())], ..RunFilter::default() };
        walk(&stage, &filter, 10).await.0
    };

    assert!(with("new").await.is_empty());
    assert_eq!(with("paid").await, [run]);
}
