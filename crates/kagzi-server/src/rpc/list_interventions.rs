//! ListInterventions: questions, the most urgent first, in pages that go both ways.

use kagzi_engine::Engine;
use kagzi_model::{
    Name, Timestamp,
    intervention::{Intervention, InterventionState, InterventionType},
};
use kagzi_proto::v1;
use kagzi_store::{Cursor, Direction, InterventionFilter, PageRequest, TOTAL_MAX, Total};
use tonic::Status;

use crate::{
    check::{self, invalid},
    page_token, response_budget,
    status::from_engine,
    wire,
};

/// Questions that are read at once where all of them are counted.
const CHUNK_LEN: usize = 1_000;
/// Most people and groups that one list is about.
const ASSIGNEES_MAX: usize = 50;

pub async fn handle(
    engine: &Engine,
    request: v1::ListInterventionsRequest,
) -> Result<v1::ListInterventionsResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let filter = filter(engine, &namespace, &request).await?;
    let query = format!("interventions {namespace} {filter:?}");
    let limit = check::page_size(request.page_size, 50, 1_000)?;
    let page = page_token::read(&request.page_token, &query, limit)?;
    let found = engine.store().interventions(&namespace, &filter, &page).await;
    let found = found.map_err(|error| from_engine(error.into()))?;
    let total = if request.include_total { count(engine, &namespace, &filter).await? } else { Total::of(0) };
    let now = engine.clock().now();
    let answered = response_budget::page(found, &page, &query, |row: Intervention| {
        (place(&row), wire::intervention(now, row))
    });
    Ok(v1::ListInterventionsResponse {
        next_page_token: answered.next_page_token,
        prev_page_token: answered.prev_page_token,
        interventions: answered.items,
        total_count: total.count,
        total_capped: total.capped,
        unreadable_count: answered.unreadable,
    })
}

fn place(row: &Intervention) -> Cursor {
    Cursor { at: row.due_at(), id: row.key.id }
}

async fn filter(
    engine: &Engine,
    namespace: &Name,
    request: &v1::ListInterventionsRequest,
) -> Result<InterventionFilter, Status> {
    let state = |number: &i32| {
        let rule = "it must be an InterventionState, 1 to 5";
        InterventionState::from_number((*number).into()).ok_or_else(|| invalid("states", number, rule))
    };
    let mut states: Vec<InterventionState> = request.states.iter().map(state).collect::<Result<_, _>>()?;
    states.sort_unstable();
    states.dedup();
    if states.is_empty() {
        states = vec![InterventionState::Queued, InterventionState::Pending];
    }
    let named = request.assignees.iter().map(|name| check::name("assignees", name));
    let mut assignees: Vec<Name> = named.collect::<Result<_, _>>()?;
    if let Some(person) = check::optional_name("mine", &request.mine)? {
        assignees.extend(engine.asked_as(namespace, &person).await.map_err(from_engine)?);
    }
    assignees.sort_unstable();
    assignees.dedup();
    if assignees.len() > ASSIGNEES_MAX {
        let rule = format!("at most {ASSIGNEES_MAX} people and groups are looked for at once");
        return Err(invalid("assignees", assignees.len(), rule));
    }
    let kind = match request.r#type {
        0 => None,
        number => Some(
            InterventionType::from_number(number.into())
                .ok_or_else(|| invalid("type", number, "it must be an InterventionType, 1 to 5"))?,
        ),
    };
    let run = match request.run_id.as_str() {
        "" => None,
        id => Some(check::run_id("run_id", id)?),
    };
    let due = request.due_before.as_ref().map(|at| wire::read_timestamp("due_before", at));
    let due_before: Option<Timestamp> = due.transpose()?;
    Ok(InterventionFilter { states, assignees, kind, run, severity_min: None, due_before })
}

async fn count(engine: &Engine, namespace: &Name, filter: &InterventionFilter) -> Result<Total, Status> {
    let mut page = PageRequest { from: None, direction: Direction::Next, limit: CHUNK_LEN };
    let mut counted = 0;
    while counted <= TOTAL_MAX {
        let chunk = engine.store().interventions(namespace, filter, &page).await;
        let chunk = chunk.map_err(|error| from_engine(error.into()))?;
        counted += chunk.rows.len() as u64;
        page.from = chunk.rows.last().map(place);
        if !chunk.has_next || page.from.is_none() {
            break;
        }
    }
    Ok(Total::of(counted))
}
