//! ListStepAttempts: what a run's steps did, oldest first, with those that run now.

use kagzi_engine::{Engine, Outline};
use kagzi_model::{AttemptState, Name, RunId, StepAttempt, Timestamp, history::Attempts};
use kagzi_proto::v1::{self, StepStatus};
use kagzi_store::{Cursor, Direction, PageRequest};
use prost::Message;
use tonic::Status;
use uuid::Uuid;

use crate::{
    check::{self, invalid},
    find, page_token,
    response_budget::Room,
    status::from_engine,
    wire,
};

pub async fn handle(
    engine: &Engine,
    request: v1::ListStepAttemptsRequest,
) -> Result<v1::ListStepAttemptsResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    if !request.step_id.is_empty() {
        check::step_path("step_id", &request.step_id)?;
    }
    let run = find::run(engine, &namespace, &request.run_id, request.run.as_ref()).await?;
    let limit = check::page_size(request.page_size, 1_000, 5_000)?;
    let statuses = statuses(&request.statuses)?;
    let query = format!("attempts {namespace:?} {run} {:?} {statuses:?}", request.step_id);
    let page = page_token::read(&request.page_token, &query, limit)?;
    let (attempts, outline) = of_run(engine, &namespace, run).await?;
    let list: Vec<_> = attempts
        .into_iter()
        .filter(|attempt| request.step_id.is_empty() || *attempt.path == *request.step_id)
        .map(|attempt| (attempt.seq, wire::step_attempt(run, attempt)))
        .filter(|(_, (attempt, _))| statuses.is_empty() || statuses.contains(&attempt.status))
        .collect();
    let total = list.len();
    let (places, mut list): (Vec<_>, Vec<_>) = list.into_iter().unzip();
    // Those that only a worker tells of have no place yet; they are few, and come with the last page.
    let places: Vec<u64> = places.into_iter().flatten().collect();
    let (from, to) = cut(bounds(&page, &places), page.direction, |at| {
        let (attempt, recorded) = &list[at];
        attempt.encoded_len() + recorded.map_or(0, |seq| outline.payload_bytes(seq))
    });
    let last = to == places.len();
    let list: Vec<_> = list.drain(from..if last { total } else { to }).collect();
    let seqs: Vec<_> = list.iter().filter_map(|(_, recorded)| *recorded).collect();
    let mut payloads = engine.payloads(&namespace, run, &seqs).await.map_err(from_engine)?;
    let token = |direction, at: Option<&u64>| match at {
        Some(seq) => page_token::write(direction, place(*seq), &query),
        None => String::new(),
    };
    Ok(v1::ListStepAttemptsResponse {
        next_page_token: token(Direction::Next, places.get(to.wrapping_sub(1)).filter(|_| !last)),
        prev_page_token: token(Direction::Prev, places.get(from).filter(|_| from > 0)),
        total_count: total as u64,
        total_capped: false,
        step_attempts: list
            .into_iter()
            .map(|(attempt, recorded)| {
                let output = recorded.and_then(|seq| payloads.remove(&seq)).map(wire::payload);
                v1::StepAttempt { output, ..attempt }
            })
            .collect(),
    })
}

/// Cuts a page to what fits into an answer, on the side that was read last.
fn cut((from, to): (usize, usize), direction: Direction, bytes: impl Fn(usize) -> usize) -> (usize, usize) {
    let mut room = Room::new();
    match direction {
        Direction::Next => (from, from + (from..to).take_while(|at| room.take(bytes(*at))).count()),
        Direction::Prev => (to - (from..to).rev().take_while(|at| room.take(bytes(*at))).count(), to),
    }
}

/// The event that told of an attempt first is its place, whatever becomes of it and of the others.
fn place(seq: u64) -> Cursor {
    Cursor { at: Timestamp(i64::try_from(seq).unwrap_or(i64::MAX)), id: Uuid::nil() }
}

/// From where to where the page goes among these places.
fn bounds(page: &PageRequest, places: &[u64]) -> (usize, usize) {
    let token = page.from.map(|from| u64::try_from(from.at.0).unwrap_or(0));
    match page.direction {
        Direction::Next => {
            let from = token.map_or(0, |token| places.partition_point(|seq| *seq <= token));
            (from, from.saturating_add(page.limit).min(places.len()))
        }
        Direction::Prev => {
            let to = token.map_or(places.len(), |token| places.partition_point(|seq| *seq < token));
            (to.saturating_sub(page.limit), to)
        }
    }
}

fn statuses(numbers: &[i32]) -> Result<Vec<i32>, Status> {
    let mut statuses = numbers.to_vec();
    if let Some(number) =
        statuses.iter().find(|number| StepStatus::try_from(**number).is_err() || **number == 0)
    {
        return Err(invalid("statuses", number, "it must be a StepStatus, 1 (PENDING) to 5 (SLEEPING)"));
    }
    statuses.sort_unstable();
    statuses.dedup();
    Ok(statuses)
}

/// Every attempt: the recorded ones, then those that a worker says it runs now. With the history they came
/// from.
pub async fn of_run(
    engine: &Engine,
    namespace: &Name,
    run: RunId,
) -> Result<(Vec<StepAttempt>, Outline<Attempts>), Status> {
    let row = engine.read_run(namespace, run).await.map_err(from_engine)?.run;
    let outline = Outline::read(engine, (namespace, run), Attempts::default(), 0).await;
    let mut outline = outline.map_err(from_engine)?;
    let mut list = std::mem::take(&mut outline.view).into_list();
    let Some(lease) = row.lease() else { return Ok((list, outline)) };
    for step in engine.running_steps(run, row.epoch) {
        let told = |known: &StepAttempt| known.path == step.path && known.attempt >= step.attempt;
        if list.iter().any(told) {
            continue;
        }
        list.iter_mut().filter(|known| known.path == step.path).for_each(|known| known.latest = false);
        list.push(StepAttempt {
            seq: None,
            path: step.path,
            position: step.position,
            attempt: step.attempt,
            worker: Some(lease.worker),
            started_at: Some(step.since),
            finished_at: None,
            state: AttemptState::Running,
            latest: true,
        });
    }
    Ok((list, outline))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response_budget::ANSWER_BYTES_MAX;

    #[test]
    fn pages_of_attempts_meet_and_do_not_overlap_although_some_leave_the_list() {
        let page = |direction, at: Option<u64>| PageRequest { from: at.map(place), direction, limit: 3 };
        let all = [1, 4, 5, 9, 12, 13];

        assert_eq!(bounds(&page(Direction::Next, None), &all), (0, 3));
        assert_eq!(bounds(&page(Direction::Next, Some(5)), &all), (3, 6));
        assert_eq!(bounds(&page(Direction::Prev, Some(9)), &all), (0, 3));
        assert_eq!(bounds(&page(Direction::Prev, Some(4)), &all), (0, 1));
        assert_eq!(bounds(&page(Direction::Next, Some(99)), &all), (6, 6));
        // Two were retried since the last page, and a filter by status no longer shows them.
        let fewer = [4, 9, 12, 13];
        assert_eq!(bounds(&page(Direction::Next, Some(5)), &fewer), (1, 4));
        assert_eq!(bounds(&page(Direction::Prev, Some(9)), &fewer), (0, 1));
    }

    #[test]
    fn a_page_of_large_outputs_ends_where_they_no_longer_fit() {
        let bytes = |_| ANSWER_BYTES_MAX / 3;

        assert_eq!(cut((2, 9), Direction::Next, bytes), (2, 4));
        assert_eq!(cut((2, 9), Direction::Prev, bytes), (7, 9));
        assert_eq!(cut((2, 9), Direction::Next, |_| 10), (2, 9));
        assert_eq!(cut((9, 9), Direction::Next, bytes), (9, 9));
    }
}
