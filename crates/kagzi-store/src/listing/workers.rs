//! Workers, newest first. A namespace has few, so one index and the rest compared row by row.

use kagzi_model::Name;

use super::{Arm, Dialect, Listing, Term, Value};
use crate::WorkerFilter;

/// The listing of workers that match.
pub fn workers(dialect: Dialect, columns: &str, namespace: &Name, filter: &WorkerFilter) -> Listing {
    let text = |column: &str, name: &Name| Term::Compare(column.into(), "=", Value::Text(name.clone()));
    let mut terms = vec![text("workers.namespace_id", namespace)];
    terms.extend(filter.status.map(|status| Term::Plain(format!("workers.status = {}", status as u8))));
    terms.extend(filter.task_queue.as_ref().map(|queue| text("workers.task_queue", queue)));
    let arm = Arm {
        source: format!("{}workers", dialect.schema),
        order: ("workers.registered_at".into(), "workers.worker_id".into()),
        terms,
        covered: None,
    };
    Listing {
        dialect,
        columns: columns.to_owned(),
        order: ("registered_at", "worker_id"),
        ascending: false,
        arms: vec![arm],
    }
}
