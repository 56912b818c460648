//! Handing runs over: read what is recorded, compose the messages, and give back what cannot be read. One
//! run's trouble is that run's affair and never ends the stream.

use std::time::Duration;

use futures_util::future::BoxFuture;
use kagzi_engine::{Assigned, Engine};
use kagzi_model::{LeaseRef, act};
use kagzi_proto::v1::{self, server_message::Message as Down};
use kagzi_store::Assignment;
use prost::Message as _;
use tonic::Status;
use tracing::warn;

use super::report::shorten;
use crate::{handler_input, services::Services, status::from_engine, wire};

/// A journal page is closed once it is this large.
const PAGE_BYTES: usize = 1024 * 1024;
/// About what an assignment weighs beside its payloads.
const ASSIGN_BYTES: usize = 512;
/// When to try again to give a run back while the store is away.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

pub type Loading = BoxFuture<'static, (LeaseRef, Result<Assigned, Status>)>;

/// A run that can be handed over without reading anything: it has recorded nothing, and its input came by
/// just now.
pub fn at_hand(assignment: Assignment) -> Result<Assigned, Box<Assignment>> {
    match assignment {
        Assignment { run, input: Some(input), fresh: true } if run.options.handler_of.is_none() => {
            Ok(Assigned { run, input, journal: None })
        }
        other => Err(Box::new(other)),
    }
}

/// Reads what the run's worker needs.
pub fn load(engine: Engine, assignment: Assignment) -> Loading {
    let lease = assignment.lease();
    Box::pin(async move {
        let loaded = async {
            let mut assigned = Assigned::load(&engine, assignment).await.map_err(from_engine)?;
            assigned.input = handler_input::of(&engine, &assigned.run, assigned.input).await?;
            Ok(assigned)
        };
        let loaded = loaded.await;
        (lease, loaded)
    })
}

/// Gives a run back that could not be read. While the store is away it tries again: nobody else knows of the
/// lease.
pub async fn give_back(engine: Engine, lease: LeaseRef, status: Status) -> LeaseRef {
    let (namespace, run) = (&lease.namespace, lease.run);
    let message = status.message();
    warn!(%namespace, %run, code = ?status.code(), message, "a run could not be handed over, giving it back");
    let why = shorten(format!("it could not be handed over to a worker: {message}"));
    while engine.apply(vec![lease.report(act::Release { why: why.clone() })]).await.is_err() {
        tokio::time::sleep(AGAIN_AFTER).await;
    }
    lease
}

/// The messages that hand a run over, and about how many bytes they have.
pub fn compose(services: &Services, assigned: Assigned) -> Vec<(Down, usize)> {
    let engine = &services.engine;
    let now = engine.clock().now();
    let mut pages =
        pages(assigned.entries().map(|entry| wire::journal_entry(&entry, now))).into_iter().peekable();
    let Assigned { run, input, .. } = assigned;
    let (first, first_bytes) = pages.next().unwrap_or_default();
    let lease = v1::LeaseRef { run_id: run.id.to_string(), epoch: run.epoch };
    let standard = i64::try_from(engine.settings().start_to_close.as_millis()).unwrap_or(i64::MAX);
    let trace = services.tracer.leased(&run);
    let bytes = ASSIGN_BYTES + input.data.len() + first_bytes;
    let assign = v1::Assign {
        lease: Some(lease.clone()),
        workflow_type: run.workflow_type.to_string(),
        business_id: run.shown_id(),
        namespace_id: run.namespace.to_string(),
        input: Some(wire::payload(input)),
        journal: first,
        journal_continues: pages.peek().is_some(),
        attempts: run.attempts,
        start_to_close_timeout_ms: run.options.timeouts.start_to_close_ms.unwrap_or(standard),
        step_concurrency_max: engine.settings().step_concurrency_max,
        traceparent: trace.traceparent,
        former_traceparent: trace.former,
        tracestate: trace.tracestate,
        schedule_id: run.schedule().map(|id| id.to_string()).unwrap_or_default(),
        generation: run.generation,
        scheduled_at: run.options.scheduled.as_ref().map(|by| wire::timestamp(by.at)),
    };
    let mut messages = vec![(Down::Assign(Box::new(assign)), bytes)];
    while let Some((page, bytes)) = pages.next() {
        let journal_continues = pages.peek().is_some();
        let page = v1::JournalPage { lease: Some(lease.clone()), journal: page, journal_continues };
        messages.push((Down::JournalPage(page), bytes));
    }
    messages
}

/// Cuts a journal into pages, so that no message grows with the length of a history.
fn pages(journal: impl Iterator<Item = v1::JournalEntry>) -> Vec<(Vec<v1::JournalEntry>, usize)> {
    let mut pages = vec![(Vec::new(), 0)];
    for entry in journal {
        let size = 8 + entry.encoded_len();
        let (_, bytes) = pages.last().expect("there is always a page");
        if bytes + size > PAGE_BYTES && *bytes > 0 {
            pages.push((Vec::new(), 0));
        }
        let (page, bytes) = pages.last_mut().expect("there is always a page");
        *bytes += size;
        page.push(entry);
    }
    pages
}
