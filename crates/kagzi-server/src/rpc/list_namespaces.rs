//! ListNamespaces: by name, one page at a time.

use kagzi_engine::Engine;
use kagzi_model::Name;
use kagzi_proto::v1;
use tonic::Status;

use super::get_namespace;
use crate::{
    check::{self, invalid},
    status::from_engine,
};

/// What a page token begins with; the rest is the last name of the page before.
const TOKEN: &str = "after:";

pub async fn handle(
    engine: &Engine,
    request: v1::ListNamespacesRequest,
) -> Result<v1::ListNamespacesResponse, Status> {
    let limit = check::page_size(request.page_size, 50, 1_000)?;
    let after = match request.page_token.as_str() {
        "" => None,
        token => match token.strip_prefix(TOKEN) {
            Some(name) => Some(check::name("page_token", name)?),
            None => return Err(invalid("page_token", token, "it must come from the page before")),
        },
    };
    let found = engine.store().namespaces(after.as_ref(), limit + 1).await;
    let mut rows = found.map_err(|error| from_engine(error.into()))?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let last: Option<Name> = rows.last().filter(|_| more).map(|row| row.name.clone());
    let mut namespaces = Vec::with_capacity(rows.len());
    for row in rows {
        namespaces.push(get_namespace::shown(engine, row).await?);
    }
    let next_page_token = last.map(|name| format!("{TOKEN}{name}")).unwrap_or_default();
    Ok(v1::ListNamespacesResponse { namespaces, next_page_token })
}
