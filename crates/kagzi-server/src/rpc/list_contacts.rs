//! ListContacts: people by name, in pages that go both ways.

use kagzi_engine::Engine;
use kagzi_model::{NounRow, intervention::Contact};
use kagzi_proto::v1;
use kagzi_store::{Page, Total};
use tonic::Status;

use crate::{check, page_token, response_budget::page_by_name, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::ListContactsRequest,
) -> Result<v1::ListContactsResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let (kind, query) = ("contact", format!("contacts {namespace}"));
    let limit = check::page_size(request.page_size, 50, 1_000)?;
    let (direction, from) = page_token::read_by_name(&request.page_token, &query)?;
    let found = engine.list_nouns((&namespace, kind), direction, from.as_ref(), limit).await;
    let found: Page<NounRow> = found.map_err(from_engine)?;
    let mut answered = page_by_name(found, direction, &query, |row: NounRow| {
        // One that cannot be read keeps its place until the page is cut.
        let read = row.read::<Contact>().ok();
        (row.key.id.clone(), read.map(|contact| wire::contact(&row.key.id, contact)).unwrap_or_default())
    });
    let len = answered.items.len();
    answered.items.retain(|contact| !contact.name.is_empty());
    let left_out = len - answered.items.len();
    let total = match request.include_total {
        true => engine.count_nouns((&namespace, kind)).await.map_err(from_engine)?,
        false => Total::of(0),
    };
    Ok(v1::ListContactsResponse {
        contacts: answered.items,
        next_page_token: answered.next_page_token,
        prev_page_token: answered.prev_page_token,
        total_count: total.count,
        total_capped: total.capped,
        unreadable_count: u32::try_from(left_out).unwrap_or(u32::MAX),
    })
}
