//! Lists: newest first, filtered, in pages that neither skip nor repeat a row while others are inserted.

use std::collections::HashSet;

use kagzi_model::{Run, RunId, Status, WorkerStatus};
use kagzi_store::{
    Cursor, Deregister, Direction, Drain, Page, PageRequest, RunFilter, WorkerFilter, WorkerView,
};

use crate::{Stage, TYPE};

async fn runs(stage: &Stage, filter: &RunFilter, page: PageRequest) -> Page<Run> {
    stage.store.runs(&stage.namespace, filter, &page).await.unwrap()
}

fn first(limit: usize) -> PageRequest {
    PageRequest { from: None, direction: Direction::Next, limit }
}

fn at(run: &Run) -> Option<Cursor> {
    Some(Cursor { at: run.created_at, id: run.id.0 })
}

fn ids(page: &Page<Run>) -> Vec<RunId> {
    page.rows.iter().map(|run| run.id).collect()
}

pub async fn runs_are_listed_newest_first_and_filtered(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let leased = stage.start("order-1").await;
    standing.next().await;
    stage.pass_ms(1);
    let queued = stage.start("order-2").await;
    stage.pass_ms(1);
    let mut other = stage.new_run("order-3");
    (other.workflow_type, other.task_queue) = ("refund".into(), "slow".into());
    let other = stage.start_with(other).await;
    stage.ok(stage.cancel(other)).await;

    let list = async |filter: RunFilter| ids(&runs(&stage, &filter, first(10)).await);
    let status = |status| RunFilter { statuses: vec![status], ..RunFilter::default() };

    assert_eq!(list(RunFilter::default()).await, [other, queued, leased]);
    assert_eq!(list(status(Status::Running)).await, [leased]);
    assert_eq!(list(status(Status::Pending)).await, [queued]);
    assert_eq!(list(status(Status::Cancelled)).await, [other]);
    assert!(list(status(Status::Failed)).await.is_empty());
    let by_type = RunFilter { workflow_type: Some(TYPE.into()), ..RunFilter::default() };
    assert_eq!(list(by_type).await, [queued, leased]);
    let by_queue = RunFilter { task_queue: Some("slow".into()), ..status(Status::Cancelled) };
    assert_eq!(list(by_queue).await, [other]);
}

pub async fn pages_forward_and_back_neither_skip_nor_repeat_while_rows_come_in(stage: Stage) {
    let mut expected = Vec::new();
    for number in 0..23 {
        expected.insert(0, stage.start(&format!("order-{number}")).await);
        // Three of four share their microsecond with a neighbour: only the id tells them apart.
        if number % 4 == 0 {
            stage.pass_one_tick();
        }
    }
    expected.sort_by_key(|id| std::cmp::Reverse(*id));

    let mut page = runs(&stage, &RunFilter::default(), first(5)).await;
    let mut forward = ids(&page);
    assert!(!page.has_prev);
    let mut inserted = Vec::new();
    while page.has_next {
        stage.pass_one_tick();
        inserted.push(stage.start(&format!("later-{}", forward.len())).await);
        let from = at(page.rows.last().unwrap());
        page =
            runs(&stage, &RunFilter::default(), PageRequest { from, direction: Direction::Next, limit: 5 })
                .await;
        assert!(page.has_prev);
        forward.extend(ids(&page));
    }
    assert_eq!(forward, expected);

    let mut backward: Vec<RunId> = ids(&page);
    while page.has_prev {
        let from = at(page.rows.first().unwrap());
        page =
            runs(&stage, &RunFilter::default(), PageRequest { from, direction: Direction::Prev, limit: 5 })
                .await;
        assert!(page.has_next);
        assert!(page.rows.is_sorted_by_key(|run| std::cmp::Reverse((run.created_at, run.id))));
        backward.splice(0..0, ids(&page));
    }
    let everything: Vec<RunId> = inserted.into_iter().rev().chain(expected).collect();
    assert_eq!(backward, everything);
    assert_eq!(backward.iter().collect::<HashSet<_>>().len(), backward.len());
}

pub async fn an_empty_list_has_no_neighbours(stage: Stage) {
    let page = runs(&stage, &RunFilter::default(), first(5)).await;

    assert_eq!(page, Page::empty());
}

pub async fn workers_are_listed_counted_and_filtered(stage: Stage) {
    let mut standing = stage.stand_by(2).await;
    stage.start("order-1").await;
    standing.next().await;
    stage.pass_ms(1);
    let draining = stage.register(1).await;
    stage.worker(Drain { id: draining }).await.unwrap();
    stage.pass_ms(1);
    let offline = stage.register(1).await;
    stage.worker(Deregister { id: offline }).await.unwrap();

    let list = async |filter: WorkerFilter, page: PageRequest| {
        let (page, total) = stage.store.workers(&stage.namespace, &filter, &page).await.unwrap();
        let rows: Vec<_> = page.rows.iter().map(|view: &WorkerView| (view.worker.id, view.active)).collect();
        assert!(!total.capped);
        (rows, total.count, page.has_next)
    };
    let status = |status| WorkerFilter { status: Some(status), ..WorkerFilter::default() };

    let (all, total, more) = list(WorkerFilter::default(), first(10)).await;
    assert_eq!(all, [(offline, 0), (draining, 0), (standing.worker, 1)]);
    assert_eq!((total, more), (3, false));
    let (page, total, more) = list(WorkerFilter::default(), first(2)).await;
    assert_eq!((page.len(), total, more), (2, 3, true));
    let last = stage
        .store
        .workers(&stage.namespace, &WorkerFilter::default(), &first(10))
        .await
        .unwrap()
        .0
        .rows
        .pop();
    let last = last.unwrap().worker;
    let back = PageRequest {
        from: Some(Cursor { at: last.registered_at, id: last.id.0 }),
        direction: Direction::Prev,
        limit: 1,
    };
    assert_eq!(list(WorkerFilter::default(), back).await, (vec![(draining, 0)], 3, true));
    let (online, total, _) = list(status(WorkerStatus::Online), first(10)).await;
    assert_eq!((online, total), (vec![(standing.worker, 1)], 1));
    assert_eq!(list(status(WorkerStatus::Draining), first(10)).await.0, [(draining, 0)]);
    assert_eq!(list(status(WorkerStatus::Offline), first(10)).await.0, [(offline, 0)]);
    let elsewhere = WorkerFilter { task_queue: Some("slow".into()), ..WorkerFilter::default() };
    assert_eq!(list(elsewhere, first(10)).await, (vec![], 0, false));
}
