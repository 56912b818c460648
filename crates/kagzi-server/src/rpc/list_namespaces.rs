//! ListNamespaces: by name, in pages that go both ways.

use kagzi_engine::Engine;
use kagzi_model::Name;
use kagzi_proto::v1;
use kagzi_store::{AsideRow, Direction, ListedNamespace, Page, TOTAL_MAX, Total};
use tonic::Status;

use super::get_namespace;
use crate::{check, page_token, response_budget::page_by_name, status::from_engine};

const QUERY: &str = "namespaces";

/// Namespaces that are read at once where all of them are looked at.
const CHUNK_LEN: usize = 1_000;

pub async fn handle(
    engine: &Engine,
    request: v1::ListNamespacesRequest,
) -> Result<v1::ListNamespacesResponse, Status> {
    let limit = check::page_size(request.page_size, 50, 1_000)?;
    let (direction, from) = page_token::read_by_name(&request.page_token, QUERY)?;
    let Page { rows, has_next, has_prev, .. }: Page<ListedNamespace> = match (direction, from) {
        (Direction::Prev, Some(from)) => before(engine, &from, limit).await?,
        (Direction::Next | Direction::Prev, from) => {
            let mut rows = read(engine, from.as_ref(), limit + 1).await?;
            let has_next = rows.len() > limit;
            rows.truncate(limit);
            Page { rows, has_next, has_prev: from.is_some(), ..Page::empty() }
        }
    };
    let mut shown = Vec::with_capacity(rows.len());
    for row in rows {
        let ListedNamespace { name, read } = row;
        let namespace = match read {
            Ok(namespace) => get_namespace::shown(engine, namespace).await?,
            // It keeps its place until the page is cut, so that pages go on behind it.
            Err(_) => v1::Namespace::default(),
        };
        shown.push((name, namespace));
    }
    let found = Page { rows: shown, has_next, has_prev, ..Page::empty() };
    let mut answered = page_by_name(found, direction, QUERY, |row| row);
    let len = answered.items.len();
    answered.items.retain(|namespace| !namespace.namespace_id.is_empty());
    let left_out = len - answered.items.len();
    let total = if request.include_total { count(engine).await? } else { Total::of(0) };
    Ok(v1::ListNamespacesResponse {
        namespaces: answered.items,
        next_page_token: answered.next_page_token,
        prev_page_token: answered.prev_page_token,
        total_count: total.count,
        total_capped: total.capped,
        unreadable_count: u32::try_from(left_out).unwrap_or(u32::MAX),
    })
}

/// Reads a stretch of them. One that cannot be read is set aside, so that `kagzi doctor` names it although
/// nobody uses it.
async fn read(engine: &Engine, after: Option<&Name>, limit: usize) -> Result<Vec<ListedNamespace>, Status> {
    let found = engine.store().namespaces(after, limit).await;
    let found = found.map_err(|error| from_engine(error.into()))?;
    let (aside, now) = (&engine.store().stats().aside, engine.clock().now());
    for ListedNamespace { name, read } in &found {
        match read {
            Ok(_) if aside.is_empty() => {}
            Ok(_) => aside.take_back(&AsideRow::Namespace(name.clone())),
            Err(why) => aside.put(AsideRow::Namespace(name.clone()), why, now),
        }
    }
    Ok(found)
}

/// The page that ends before this name. Stores read forwards only, and namespaces are few: all before it are
/// passed over.
async fn before(engine: &Engine, end: &Name, limit: usize) -> Result<Page<ListedNamespace>, Status> {
    let mut rows: Vec<ListedNamespace> = Vec::new();
    let mut has_prev = false;
    loop {
        let chunk = read(engine, rows.last().map(|last| &last.name), CHUNK_LEN).await?;
        let last = chunk.len() < CHUNK_LEN || chunk.last().is_some_and(|last| last.name >= *end);
        rows.extend(chunk.into_iter().take_while(|row| row.name < *end));
        let surplus = rows.len().saturating_sub(limit);
        has_prev |= surplus > 0;
        rows.drain(..surplus);
        if last {
            return Ok(Page { rows, has_next: true, has_prev, ..Page::empty() });
        }
    }
}

async fn count(engine: &Engine) -> Result<Total, Status> {
    let (mut counted, mut after) = (0, None);
    while counted <= TOTAL_MAX {
        let chunk = read(engine, after.as_ref(), CHUNK_LEN).await?;
        counted += chunk.len() as u64;
        match chunk.last() {
            Some(last) if chunk.len() == CHUNK_LEN => after = Some(last.name.clone()),
            Some(_) | None => break,
        }
    }
    Ok(Total::of(counted))
}
