//! ListStepAttempts: what a run's steps did, oldest first, with those that run now.

use kagzi_engine::Engine;
use kagzi_model::{Name, RunId, Timestamp};
use kagzi_proto::v1::{self, StepStatus};
use kagzi_store::{AttemptState, Cursor, Direction, PageRequest, StepAttempt, attempts};
use tonic::Status;
use uuid::Uuid;

use super::find_run;
use crate::{
    check::{self, invalid},
    page_token,
    status::from_engine,
    wire,
};

/// Events of one run that are read to build the list.
const EVENTS_MAX: usize = 300_000;

pub async fn handle(
    engine: &Engine,
    request: v1::ListStepAttemptsRequest,
) -> Result<v1::ListStepAttemptsResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let run = find_run::run(engine, &namespace, &request.run_id).await?;
    let limit = check::page_size(request.page_size, 1_000, 5_000)?;
    let statuses = statuses(&request.statuses)?;
    let query = format!("attempts {namespace:?} {run} {:?} {statuses:?}", request.step_id);
    let page = page_token::read(&request.page_token, &query, limit)?;
    let attempts = of_run(engine, &namespace, run).await?.into_iter();
    let list: Vec<_> = attempts
        .filter(|attempt| request.step_id.is_empty() || *attempt.path == *request.step_id)
        .map(|attempt| wire::step_attempt(run, attempt))
        .filter(|attempt| statuses.is_empty() || statuses.contains(&attempt.status))
        .collect();
    let (from, to) = bounds(&page, list.len());
    let token = |direction, wanted: bool, at: usize| match wanted {
        true => page_token::write(direction, place(at), &query),
        false => String::new(),
    };
    Ok(v1::ListStepAttemptsResponse {
        next_page_token: token(Direction::Next, to < list.len(), to.saturating_sub(1)),
        prev_page_token: token(Direction::Prev, from > 0, from),
        total_count: list.len() as u64,
        step_attempts: list.into_iter().skip(from).take(to - from).collect(),
    })
}

/// Attempts are only ever added at the end, so their number in the list is their place.
fn place(at: usize) -> Cursor {
    Cursor { at: Timestamp(at as i64), id: Uuid::nil() }
}

/// From where to where the page goes in a list of this length.
fn bounds(page: &PageRequest, len: usize) -> (usize, usize) {
    let at = page.from.map(|from| usize::try_from(from.at.0).unwrap_or(0).min(len));
    match (page.direction, at) {
        (Direction::Next, None) => (0, page.limit.min(len)),
        (Direction::Next, Some(at)) => {
            let from = at.saturating_add(1).min(len);
            (from, from.saturating_add(page.limit).min(len))
        }
        (Direction::Prev, at) => {
            let to = at.unwrap_or(len);
            (to.saturating_sub(page.limit), to)
        }
    }
}

fn statuses(numbers: &[i32]) -> Result<Vec<i32>, Status> {
    let mut statuses = numbers.to_vec();
    if let Some(number) =
        statuses.iter().find(|number| StepStatus::try_from(**number).is_err() || **number == 0)
    {
        return Err(invalid("statuses", number, "it must be a StepStatus"));
    }
    statuses.sort_unstable();
    statuses.dedup();
    Ok(statuses)
}

/// Every attempt: the recorded ones, then those that a worker says it runs now.
pub async fn of_run(engine: &Engine, namespace: &Name, run: RunId) -> Result<Vec<StepAttempt>, Status> {
    let row = engine.read_run(namespace, run).await.map_err(from_engine)?.run;
    let events = engine.store().events(namespace, run, 0, EVENTS_MAX).await;
    let mut list = attempts(&events.map_err(|error| from_engine(error.into()))?);
    let Some(lease) = row.lease() else { return Ok(list) };
    for step in engine.running_steps(run, row.epoch) {
        let told = |known: &StepAttempt| known.path == step.path && known.attempt >= step.attempt;
        if list.iter().any(told) {
            continue;
        }
        list.iter_mut().filter(|known| known.path == step.path).for_each(|known| known.latest = false);
        list.push(StepAttempt {
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
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_attempts_meet_and_do_not_overlap() {
        let page = |direction, at: Option<usize>| PageRequest { from: at.map(place), direction, limit: 4 };

        assert_eq!(bounds(&page(Direction::Next, None), 10), (0, 4));
        assert_eq!(bounds(&page(Direction::Next, Some(3)), 10), (4, 8));
        assert_eq!(bounds(&page(Direction::Next, Some(7)), 10), (8, 10));
        assert_eq!(bounds(&page(Direction::Prev, Some(8)), 10), (4, 8));
        assert_eq!(bounds(&page(Direction::Prev, Some(2)), 10), (0, 2));
        assert_eq!(bounds(&page(Direction::Next, Some(99)), 10), (10, 10));
    }
}
