//! ListKeys: shared keys by their text, in pages that go both ways.

use kagzi_engine::Engine;
use kagzi_model::{Noun, NounRow, SharedKey};
use kagzi_proto::v1;
use kagzi_store::Total;
use tonic::Status;

use crate::{check, page_token, response_budget::page_by_name, status::from_engine, wire};

pub async fn handle(engine: &Engine, request: v1::ListKeysRequest) -> Result<v1::ListKeysResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let (limit, place) = (check::page_size(request.page_size, 50, 1_000)?, (&namespace, SharedKey::KIND));
    let query = format!("nouns {place:?}");
    let (direction, from) = page_token::read_by_name(&request.page_token, &query)?;
    let found = engine.list_nouns(place, direction, from.as_ref(), limit).await.map_err(from_engine)?;
    let total = match request.include_total {
        true => engine.count_nouns(place).await.map_err(from_engine)?,
        false => Total::of(0),
    };
    let mut answered = page_by_name(found, direction, &query, |row: NounRow| {
        // One that cannot be read keeps its place until the page is cut, so that pages go on behind it.
        let key = row.read::<SharedKey>();
        let shown = key.map_or_else(|_| v1::SharedKey::default(), |key| wire::shared_key(&row, key, false));
        (row.key.id, shown)
    });
    let len = answered.items.len();
    answered.items.retain(|key| !key.key.is_empty());
    let left_out = len - answered.items.len();
    Ok(v1::ListKeysResponse {
        keys: answered.items,
        next_page_token: answered.next_page_token,
        prev_page_token: answered.prev_page_token,
        total_count: total.count,
        total_capped: total.capped,
        unreadable_count: u32::try_from(left_out).unwrap_or(u32::MAX),
    })
}
