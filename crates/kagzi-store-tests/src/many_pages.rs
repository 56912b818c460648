//! Lists of a hundred thousand runs. Only for stores that are made for them: the reference store copies all
//! it has.

use std::collections::HashMap;

use kagzi_model::{Command, RunId};
use kagzi_store::{Direction, PageRequest, RunFilter, TOTAL_MAX};

use crate::Stage;

const OLD: usize = 100_000;
const PAGE: usize = 1_000;
/// Started while the pages are read: a thousand in all.
const NEW_PER_PAGE: usize = 10;

async fn start_many(stage: &Stage, count: usize) -> Vec<RunId> {
    let starts: Vec<_> = (0..count).map(|_| stage.new_run("")).collect();
    let ids = starts.iter().map(|start| start.id).collect();
    let commands = starts.into_iter().map(|mut start| {
        start.business_id = None;
        Command::start(start)
    });
    let outcomes = stage.apply_all(commands.collect()).await;
    assert!(outcomes.iter().all(Result::is_ok));
    ids
}

pub async fn every_old_run_is_listed_once_forward_and_once_back_while_a_thousand_come_in(stage: Stage) {
    let mut seen: HashMap<RunId, [u32; 2]> = HashMap::with_capacity(OLD);
    for _ in 0..OLD / PAGE {
        // A thousand share a microsecond: only the id tells them apart.
        seen.extend(start_many(&stage, PAGE).await.into_iter().map(|id| (id, [0, 0])));
        stage.pass_one_tick();
    }
    let filter = RunFilter::default();

    let mut request = PageRequest { from: None, direction: Direction::Next, limit: PAGE };
    let mut inserted = 0;
    loop {
        let page = stage.store.runs(&stage.namespace, &filter, &request).await.unwrap();
        for run in &page.rows {
            seen.entry(run.id).and_modify(|[forward, _]| *forward += 1);
        }
        inserted += start_many(&stage, NEW_PER_PAGE).await.len();
        stage.pass_one_tick();
        let Some(last) = page.rows.last().filter(|_| page.has_next) else { break };
        request.from = filter.order.cursor(last);
    }
    // Back from the very end: the last page is the first of the other order.
    let mut filter_back = filter.clone();
    filter_back.order.ascending = true;
    let oldest = PageRequest { from: None, direction: Direction::Next, limit: 1 };
    let oldest = stage.store.runs(&stage.namespace, &filter_back, &oldest).await.unwrap().rows.remove(0);
    seen.entry(oldest.id).and_modify(|[_, back]| *back += 1);
    request = PageRequest { from: filter.order.cursor(&oldest), direction: Direction::Prev, limit: PAGE };
    loop {
        let page = stage.store.runs(&stage.namespace, &filter, &request).await.unwrap();
        for run in &page.rows {
            seen.entry(run.id).and_modify(|[_, back]| *back += 1);
        }
        let Some(first) = page.rows.first().filter(|_| page.has_prev) else { break };
        request.from = filter.order.cursor(first);
    }

    assert_eq!(inserted, OLD / PAGE * NEW_PER_PAGE);
    let wrong = seen.values().filter(|times| **times != [1, 1]).count();
    assert_eq!((seen.len(), wrong), (OLD, 0));
    let total = stage.store.count_runs(&stage.namespace, &filter).await.unwrap();
    assert_eq!((total.count, total.capped), (TOTAL_MAX, true));
}
