//! ListRunEvents: a run's history, filtered, from either end, in pages that go both ways.

use kagzi_engine::Engine;
use kagzi_model::{Name, RunId, Timestamp};
use kagzi_proto::v1;
use kagzi_store::{Cursor, Direction, EventFilter, EventRequest, Page, TOTAL_MAX, Total};
use tonic::Status;
use uuid::Uuid;

use crate::{
    check::{self, invalid},
    find, page_token,
    response_budget::{self, ANSWER_BYTES_MAX},
    status::from_engine,
    wire,
};

/// Events that are counted at once.
const CHUNK_LEN: usize = 5_000;

pub async fn handle(
    engine: &Engine,
    request: v1::ListRunEventsRequest,
) -> Result<v1::ListRunEventsResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let filter = read(&request)?;
    let limit = check::page_size(request.page_size, 1_000, 5_000)?;
    let run = find::run(engine, &namespace, &request.run_id, request.run.as_ref()).await?;
    let query = query(&namespace, run, &filter, request.newest_first);
    let page = page_token::read(&request.page_token, &query, limit)?;
    let wanted = EventRequest {
        filter,
        beyond: page.from.map(|from| from.at.0.max(0).cast_unsigned()),
        upwards: request.newest_first != (page.direction == Direction::Next),
        limit,
        bytes_max: ANSWER_BYTES_MAX,
    };
    let total = match request.include_total {
        true => count(engine, &namespace, run, &wanted.filter).await?,
        false => Total::of(0),
    };
    let found = engine.store().history(&namespace, run, &wanted).await;
    let found = found.map_err(|error| from_engine(error.into()))?;
    let (mut rows, more) = (found.events, found.more);
    // A run that is there has events, so only an empty page leaves it open whether it is.
    if rows.is_empty() {
        engine.read_run(&namespace, run).await.map_err(from_engine)?;
    }
    // Events stay as they are, so the one that a token names is still on the other side of it.
    let behind = page.from.is_some();
    let (has_next, has_prev) = match page.direction {
        Direction::Next => (more, behind),
        Direction::Prev => {
            rows.reverse();
            (behind, more)
        }
    };
    let found = Page { rows, has_next, has_prev, ..Page::empty() };
    let answered =
        response_budget::page(found, &page, &query, |event| (place(event.seq), wire::event(event)));
    Ok(v1::ListRunEventsResponse {
        events: answered.items,
        next_page_token: answered.next_page_token,
        prev_page_token: answered.prev_page_token,
        total_count: total.count,
        total_capped: total.capped,
    })
}

/// An event's number is its place.
fn place(seq: u64) -> Cursor {
    Cursor { at: Timestamp(seq.cast_signed()), id: Uuid::nil() }
}

fn query(namespace: &str, run: RunId, filter: &EventFilter, newest_first: bool) -> String {
    format!("events {namespace:?} {run} {filter:?} {newest_first}")
}

fn read(request: &v1::ListRunEventsRequest) -> Result<EventFilter, Status> {
    let step = match request.step.as_str() {
        "" => None,
        path => Some(check::step_path("step", path)?),
    };
    Ok(EventFilter {
        kinds: kinds(&request.kinds)?,
        step,
        at: check::time_range("", request.from.as_ref(), request.to.as_ref())?,
        after: request.after_sequence.min(i64::MAX as u64),
    })
}

fn kinds(numbers: &[i32]) -> Result<Vec<u8>, Status> {
    let number = |number: &i32| {
        let known = v1::EventKind::try_from(*number).is_ok_and(|kind| kind != v1::EventKind::Unspecified);
        let stored = u8::try_from(*number).ok().filter(|_| known);
        stored.ok_or_else(|| invalid("kinds", number, "it must be an EventKind; see docs/events.md"))
    };
    let mut kinds = numbers.iter().map(number).collect::<Result<Vec<_>, _>>()?;
    // One order, so that a page token fits the same set however it was written.
    kinds.sort_unstable();
    kinds.dedup();
    Ok(kinds)
}

/// How many events match. They are read without their payloads.
async fn count(engine: &Engine, namespace: &Name, run: RunId, filter: &EventFilter) -> Result<Total, Status> {
    let (mut counted, mut after) = (0, filter.after);
    while counted <= TOTAL_MAX {
        let chunk = engine.store().outline(namespace, run, after, CHUNK_LEN).await;
        let chunk = chunk.map_err(|error| from_engine(error.into()))?;
        counted += chunk.iter().filter(|line| filter.matches(&line.event)).count() as u64;
        match chunk.last() {
            Some(last) if chunk.len() == CHUNK_LEN => after = last.event.seq,
            Some(_) | None => break,
        }
    }
    Ok(Total::of(counted))
}
