//! ListQueues: what waits and runs on each queue, and the gates before it.

use std::collections::BTreeMap;

use kagzi_engine::Engine;
use kagzi_model::{Gate, GateKey, GateScope, Name, WorkerStatus};
use kagzi_proto::v1;
use kagzi_store::{Depth, Direction, Page, PageRequest, Total, WorkerFilter, WorkerView};
use tonic::Status;

use super::get_namespace;
use crate::{check, page_token, response_budget::page_by_name, status::from_engine, wire};

/// Workers that are gone and still looked at, newest first, for the types that they served.
const OFFLINE_MAX: usize = 1_000;

pub async fn handle(
    engine: &Engine,
    request: v1::ListQueuesRequest,
) -> Result<v1::ListQueuesResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let only = check::optional_name("task_queue", &request.task_queue)?;
    let query = format!("queues {namespace:?} {only:?}");
    let limit = check::page_size(request.page_size, 50, 1_000)?;
    let (direction, from) = page_token::read_by_name(&request.page_token, &query)?;
    let gates = get_namespace::gates(engine, &namespace).await?;
    let depths = engine.store().depths(&namespace, engine.clock().now()).await;
    let depths = depths.map_err(|error| from_engine(error.into()))?;
    let mut workers = engine.living_workers(&namespace, only.as_ref()).await.map_err(from_engine)?;
    let page = PageRequest { from: None, direction: Direction::Next, limit: OFFLINE_MAX };
    let gone = WorkerFilter { status: Some(WorkerStatus::Offline), task_queue: only.clone() };
    let (gone, _) =
        engine.store().workers(&namespace, &gone, &page).await.map_err(|error| from_engine(error.into()))?;
    workers.extend(gone.rows);

    let mut queues = BTreeMap::new();
    depths.into_iter().for_each(|depth| add_depth(&mut queues, depth));
    workers.iter().for_each(|view| add_worker(&mut queues, view));
    gates.iter().for_each(|gate| add_gate(&mut queues, gate));
    let whole = GateKey::namespace(&namespace);
    let named = |queue: &v1::Queue| only.as_ref().is_none_or(|only| **only == *queue.task_queue);
    let queues: Vec<v1::Queue> = queues.into_values().filter(named).collect();
    let total = Total::of(queues.len() as u64);
    let found = cut(queues, direction, from.as_ref(), limit);
    let answered = page_by_name(found, direction, &query, |queue| (Name::from(&*queue.task_queue), queue));
    Ok(v1::ListQueuesResponse {
        queues: answered.items,
        namespace_gate: gates.iter().find(|gate| gate.key == whole).map(wire::gate),
        next_page_token: answered.next_page_token,
        prev_page_token: answered.prev_page_token,
        total_count: total.count,
        total_capped: total.capped,
    })
}

/// The page of all queues, which are in the order of their names, that a token asks for.
fn cut(
    mut queues: Vec<v1::Queue>,
    direction: Direction,
    from: Option<&Name>,
    limit: usize,
) -> Page<v1::Queue> {
    let place = |past: bool| {
        from.map(|from| {
            queues.partition_point(|queue| match past {
                true => *queue.task_queue <= **from,
                false => *queue.task_queue < **from,
            })
        })
    };
    let (begin, end) = match direction {
        Direction::Next => {
            let begin = place(true).unwrap_or(0);
            (begin, begin.saturating_add(limit).min(queues.len()))
        }
        Direction::Prev => {
            let end = place(false).unwrap_or(queues.len());
            (end.saturating_sub(limit), end)
        }
    };
    let (has_next, has_prev) = (end < queues.len(), begin > 0);
    Page { rows: queues.drain(begin..end).collect(), has_next, has_prev, ..Page::empty() }
}

type Queues = BTreeMap<String, v1::Queue>;

fn queue_mut<'q>(queues: &'q mut Queues, name: &Name) -> &'q mut v1::Queue {
    let new = || v1::Queue { task_queue: name.to_string(), ..v1::Queue::default() };
    queues.entry(name.to_string()).or_insert_with(new)
}

fn type_mut<'q>(queue: &'q mut v1::Queue, name: &Name) -> &'q mut v1::QueueType {
    let at = match queue.types.binary_search_by(|known| (*known.workflow_type).cmp(name)) {
        Ok(at) => at,
        Err(at) => {
            let new = v1::QueueType { workflow_type: name.to_string(), ..v1::QueueType::default() };
            queue.types.insert(at, new);
            at
        }
    };
    &mut queue.types[at]
}

fn add_depth(queues: &mut Queues, depth: Depth) {
    let oldest = depth.oldest_ready_at.map(wire::timestamp);
    let queue = queue_mut(queues, &depth.task_queue);
    queue.ready += depth.ready;
    queue.waiting += depth.waiting;
    queue.leased += depth.leased;
    let earlier = |a: &prost_types::Timestamp| (a.seconds, a.nanos);
    queue.oldest_ready_at = [queue.oldest_ready_at, oldest].into_iter().flatten().min_by_key(earlier);
    let kind = type_mut(queue, &depth.workflow_type);
    kind.ready = depth.ready;
    kind.waiting = depth.waiting;
    kind.leased = depth.leased;
    kind.oldest_ready_at = oldest;
}

/// Offline workers count for the types that were seen, not for who serves them.
fn add_worker(queues: &mut Queues, view: &WorkerView) {
    let online = u32::from(view.worker.status == WorkerStatus::Online);
    let registration = &view.worker.registration;
    let queue = queue_mut(queues, &registration.task_queue);
    queue.workers += online;
    for name in &registration.workflow_types {
        type_mut(queue, name).workers += online;
    }
}

fn add_gate(queues: &mut Queues, gate: &Gate) {
    match &gate.key.scope {
        GateScope::Namespace => {}
        GateScope::Queue(queue) => queue_mut(queues, queue).gate = Some(wire::gate(gate)),
        GateScope::Type { task_queue, workflow_type } => {
            type_mut(queue_mut(queues, task_queue), workflow_type).gate = Some(wire::gate(gate));
        }
    }
}
