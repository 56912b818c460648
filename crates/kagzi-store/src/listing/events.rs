//! Events of one run. The primary key leads: a history is read in its own order.

use kagzi_model::{Name, RunId};

use super::{Dialect, Statement, Value, limit};
use crate::EventRequest;

/// Up to `limit + 1` events in reading direction: sequence number, time, detail, payload and its content type.
pub fn events(dialect: Dialect, namespace: &Name, run: RunId, request: &EventRequest) -> Statement {
    let mut bind = vec![Value::Id(run.0), Value::Text(namespace.clone())];
    let (schema, marker) = (dialect.schema, dialect.marker);
    let mut bound = |value| {
        bind.push(value);
        format!("{marker}{}", bind.len())
    };
    let mut wanted = vec![format!("events.run_id = {marker}1"), of_namespace(dialect)];
    if let Some(seq) = request.beyond {
        let operator = if request.upwards { ">" } else { "<" };
        let seq = i64::try_from(seq).unwrap_or(i64::MAX);
        wanted.push(format!("events.seq {operator} {}", bound(Value::Integer(seq))));
    }
    let filter = &request.filter;
    if filter.after > 0 {
        let seq = i64::try_from(filter.after).unwrap_or(i64::MAX);
        wanted.push(format!("events.seq > {}", bound(Value::Integer(seq))));
    }
    if !filter.kinds.is_empty() {
        let kinds: Vec<_> = filter.kinds.iter().map(|kind| bound(Value::Integer((*kind).into()))).collect();
        wanted.push(format!("events.kind IN ({})", kinds.join(", ")));
    }
    if let Some(step) = &filter.step {
        wanted.push(format!("events.step = {}", bound(Value::Text(step.clone()))));
    }
    for (operator, at) in [(">=", filter.at.from), ("<", filter.at.to)] {
        if let Some(at) = at {
            wanted.push(format!("events.at {operator} {}", bound(Value::Integer(at.0))));
        }
    }
    let limit = bound(limit(request.limit));
    let sort = sort(request);
    let sql = format!(
        "SELECT seq, at, detail, payload, content_type FROM {schema}events WHERE {} ORDER BY seq {sort} LIMIT {limit}",
        wanted.join(" AND ")
    );
    Statement { sql, bind }
}

/// How SQL calls the direction.
pub fn sort(request: &EventRequest) -> &'static str {
    if request.upwards { "ASC" } else { "DESC" }
}

fn of_namespace(dialect: Dialect) -> String {
    let marker = dialect.marker;
    if dialect.events_namespaced {
        return format!("events.namespace_id = {marker}2");
    }
    format!("EXISTS (SELECT 1 FROM runs WHERE runs.run_id = {marker}1 AND runs.namespace_id = {marker}2)")
}
