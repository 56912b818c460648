//! ListQueues: what waits and runs on each queue, and the gates before it.

use std::collections::BTreeMap;

use kagzi_engine::Engine;
use kagzi_model::{Gate, GateKey, GateScope, Name, WorkerStatus};
use kagzi_proto::v1;
use kagzi_store::{Depth, Direction, PageRequest, WorkerFilter, WorkerView};
use tonic::Status;

use super::get_namespace;
use crate::{check, page_token, response_budget::fitting, status::from_engine, wire};

/// Workers that are gone and still looked at, newest first, for the types that they served.
const OFFLINE_MAX: usize = 1_000;

pub async fn handle(
    engine: &Engine,
    request: v1::ListQueuesRequest,
) -> Result<v1::ListQueuesResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let only = check::optional_name("task_queue", &request.task_queue)?;
    let query = format!("queues {namespace:?} {only:?}");
    let limit = check::page_size(request.page_size, 1_000, 5_000)?;
    let after = page_token::read_after(&request.page_token, &query)?;
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
    let mut queues: Vec<v1::Queue> = queues
        .into_values()
        .filter(|queue| only.as_ref().is_none_or(|only| **only == *queue.task_queue))
        .filter(|queue| after.as_ref().is_none_or(|after| **after < *queue.task_queue))
        .collect();
    let fit = fitting(queues.iter().take(limit));
    let more = fit < queues.len();
    queues.truncate(fit);
    let last = queues.last().filter(|_| more);
    Ok(v1::ListQueuesResponse {
        next_page_token: last
            .map(|last| page_token::write_after(&last.task_queue, &query))
            .unwrap_or_default(),
        queues,
        namespace_gate: gates.iter().find(|gate| gate.key == whole).map(wire::gate),
    })
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
