//! ListNamespaces: by name, one page at a time.

use kagzi_engine::Engine;
use kagzi_proto::v1;
use tonic::Status;

use super::get_namespace;
use crate::{check, page_token, response_budget::fitting, status::from_engine};

const QUERY: &str = "namespaces";

pub async fn handle(
    engine: &Engine,
    request: v1::ListNamespacesRequest,
) -> Result<v1::ListNamespacesResponse, Status> {
    let limit = check::page_size(request.page_size, 50, 1_000)?;
    let after = page_token::read_after(&request.page_token, QUERY)?;
    let found = engine.store().namespaces(after.as_ref(), limit + 1).await;
    let mut rows = found.map_err(|error| from_engine(error.into()))?;
    let mut more = rows.len() > limit;
    rows.truncate(limit);
    let mut namespaces = Vec::with_capacity(rows.len());
    for row in rows {
        namespaces.push(get_namespace::shown(engine, row).await?);
    }
    let fit = fitting(&namespaces);
    more |= fit < namespaces.len();
    namespaces.truncate(fit);
    let last = namespaces.last().filter(|_| more);
    let next_page_token =
        last.map(|last| page_token::write_after(&last.namespace_id, QUERY)).unwrap_or_default();
    Ok(v1::ListNamespacesResponse { namespaces, next_page_token })
}
