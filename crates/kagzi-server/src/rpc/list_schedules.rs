//! ListSchedules: newest first, in pages that go both ways.

use kagzi_engine::Engine;
use kagzi_model::{Name, USER_LABEL, schedule::Schedule};
use kagzi_proto::v1;
use kagzi_store::{Cursor, Direction, Page, PageRequest, ScheduleFilter, TOTAL_MAX, Total};
use tonic::Status;

use crate::{check, page_token, response_budget, status::from_engine, wire};

/// Schedules that are read at once where more are looked at than are shown.
const CHUNK_LEN: usize = 1_000;

pub async fn handle(
    engine: &Engine,
    request: v1::ListSchedulesRequest,
) -> Result<v1::ListSchedulesResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let filter = ScheduleFilter {
        workflow_type: check::optional_name("workflow_type", &request.workflow_type)?,
        paused: request.paused,
    };
    let wanted = Wanted { namespace, filter, user: check::optional_name("user_id", &request.user_id)? };
    let query = format!("schedules {wanted:?}");
    let limit = check::page_size(request.page_size, 50, 1_000)?;
    let page = page_token::read(&request.page_token, &query, limit)?;
    let found = wanted.page(engine, &page).await?;
    let total = if request.include_total { wanted.count(engine).await? } else { Total::of(0) };
    let answered = response_budget::page(found, &page, &query, |row: Schedule| {
        (place(&row), wire::schedule(row, false))
    });
    Ok(v1::ListSchedulesResponse {
        next_page_token: answered.next_page_token,
        prev_page_token: answered.prev_page_token,
        schedules: answered.items,
        total_count: total.count,
        total_capped: total.capped,
        unreadable_count: answered.unreadable,
    })
}

fn place(row: &Schedule) -> Cursor {
    Cursor { at: row.created_at, id: row.uid }
}

/// Where a page begins and ends, also one on which nothing can be read.
fn beginning(page: &Page<Schedule>) -> Option<Cursor> {
    page.rows.first().map(place).or(page.unreadable.alone.map(|(first, _)| first))
}

fn end(page: &Page<Schedule>) -> Option<Cursor> {
    page.rows.last().map(place).or(page.unreadable.alone.map(|(_, last)| last))
}

#[derive(Debug)]
struct Wanted {
    namespace: Name,
    filter: ScheduleFilter,
    user: Option<Name>,
}

impl Wanted {
    fn is_for_the_user(&self, row: &Schedule) -> bool {
        self.user.is_none() || row.plan.labels.get(USER_LABEL) == self.user.as_ref()
    }

    async fn read(&self, engine: &Engine, page: &PageRequest) -> Result<Page<Schedule>, Status> {
        let found = engine.store().schedules(&self.namespace, &self.filter, page).await;
        found.map_err(|error| from_engine(error.into()))
    }

    /// A page of those that match. A namespace has few schedules, so the user is looked for among all of
    /// them.
    async fn page(&self, engine: &Engine, page: &PageRequest) -> Result<Page<Schedule>, Status> {
        if self.user.is_none() {
            return self.read(engine, page).await;
        }
        let mut found = Page::empty();
        let mut next = PageRequest { limit: CHUNK_LEN, ..*page };
        loop {
            let chunk = self.read(engine, &next).await?;
            found.unreadable.count += chunk.unreadable.count;
            let (edge, more) = match page.direction {
                Direction::Next => (end(&chunk), chunk.has_next),
                Direction::Prev => (beginning(&chunk), chunk.has_prev),
            };
            let matching = chunk.rows.into_iter().filter(|row| self.is_for_the_user(row));
            match page.direction {
                Direction::Next => found.rows.extend(matching),
                Direction::Prev => drop(found.rows.splice(0..0, matching.collect::<Vec<_>>())),
            }
            if !more || found.rows.len() > page.limit {
                break;
            }
            next.from = edge;
        }
        let surplus = found.rows.len().saturating_sub(page.limit);
        // On the other side there is at least the row that the token names.
        let behind = page.from.is_some();
        match page.direction {
            Direction::Next => {
                found.rows.truncate(page.limit);
                (found.has_next, found.has_prev) = (surplus > 0, behind);
            }
            Direction::Prev => {
                found.rows.drain(..surplus);
                (found.has_next, found.has_prev) = (behind, surplus > 0);
            }
        }
        Ok(found)
    }

    async fn count(&self, engine: &Engine) -> Result<Total, Status> {
        let mut page = PageRequest { from: None, direction: Direction::Next, limit: CHUNK_LEN };
        let mut counted = 0;
        while counted <= TOTAL_MAX {
            let chunk = self.read(engine, &page).await?;
            counted += chunk.rows.iter().filter(|row| self.is_for_the_user(row)).count() as u64;
            page.from = end(&chunk);
            if !chunk.has_next {
                break;
            }
        }
        Ok(Total::of(counted))
    }
}
