//! Rows of a run's history.

use std::ops::Range;

use kagzi_model::{Name, RunId};

use super::{Dialect, Statement, Value};
use crate::EventRequest;

/// Which rows of a history to find.
#[derive(Debug, Clone)]
pub struct EventRows<'q> {
    pub namespace: &'q Name,
    pub run: RunId,
    /// Rows with events of these sequence numbers.
    pub range: Range<u64>,
    /// Rows with an event of one of these kinds, by number; all when empty.
    pub kinds: &'q [u8],
    pub upwards: bool,
    /// Rows; none = all.
    pub limit: Option<usize>,
}

impl<'q> EventRows<'q> {
    /// The rows that a request may need.
    pub fn of(namespace: &'q Name, run: RunId, request: &'q EventRequest) -> Self {
        // Every row has an event of one of the kinds, but perhaps the first one has it outside of the range.
        // How many of them are about a step or in a time nobody knows before they are read.
        let exact = request.filter.step.is_none() && request.filter.at == Default::default();
        EventRows {
            namespace,
            run,
            range: crate::Reading::range(request),
            kinds: &request.filter.kinds,
            upwards: request.upwards,
            limit: exact.then(|| request.limit.saturating_add(2)),
        }
    }

    /// The statement that reads these columns of the rows, in order.
    pub fn select(&self, dialect: Dialect, columns: &str) -> Statement {
        let integer = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        let Dialect { schema, marker, .. } = dialect;
        let mut bind = vec![Value::Id(self.run.0), Value::Text(self.namespace.clone())];
        let mut bound = |value| {
            bind.push(value);
            format!("{marker}{}", bind.len())
        };
        let own = format!("events.run_id = {marker}1 AND {}", of_namespace(dialect));
        let mut wanted = vec![own];
        if self.range.start > 1 {
            // The row that holds the first one may begin before it.
            let key = if dialect.events_namespaced {
                format!("AND holding.namespace_id = {marker}2")
            } else {
                String::new()
            };
            let from = bound(integer(self.range.start));
            wanted.push(format!(
                "events.first_seq >= COALESCE((SELECT max(holding.first_seq) FROM {schema}events AS holding \
                  WHERE holding.run_id = {marker}1 {key} AND holding.first_seq <= {from}), 1)"
            ));
        }
        if self.range.end < u64::MAX {
            wanted.push(format!("events.first_seq < {}", bound(integer(self.range.end))));
        }
        if !self.kinds.is_empty() {
            let any: Vec<_> = self.kinds.iter().map(|kind| (dialect.has_kind)(*kind)).collect();
            wanted.push(format!("({})", any.join(" OR ")));
        }
        let limit =
            self.limit.map(|rows| format!(" LIMIT {}", bound(integer(rows as u64)))).unwrap_or_default();
        let sort = if self.upwards { "ASC" } else { "DESC" };
        let sql = format!(
            "SELECT {columns} FROM {schema}events WHERE {} ORDER BY events.first_seq {sort}{limit}",
            wanted.join(" AND ")
        );
        Statement { sql, bind }
    }
}

fn of_namespace(dialect: Dialect) -> String {
    let marker = dialect.marker;
    if dialect.events_namespaced {
        return format!("events.namespace_id = {marker}2");
    }
    format!("EXISTS (SELECT 1 FROM runs WHERE runs.run_id = {marker}1 AND runs.namespace_id = {marker}2)")
}
