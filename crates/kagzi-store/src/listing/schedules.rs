//! Schedules, newest first. A namespace has few, so one index and the rest compared row by row.

use kagzi_model::Name;

use super::{Arm, Dialect, Listing, Term, Value};
use crate::ScheduleFilter;

/// The listing of schedules that match.
pub fn schedules(dialect: Dialect, columns: &str, namespace: &Name, filter: &ScheduleFilter) -> Listing {
    let text = |column: &str, name: &Name| Term::Compare(column.into(), "=", Value::Text(name.clone()));
    let mut terms = vec![text("schedules.namespace_id", namespace)];
    terms.extend(filter.workflow_type.as_ref().map(|name| text("schedules.workflow_type", name)));
    // A number in one dialect and a truth value in the other: both can be asked like this.
    terms.extend(filter.paused.map(|paused| {
        Term::Plain(if paused { "schedules.paused".into() } else { "NOT schedules.paused".into() })
    }));
    let arm = Arm {
        source: format!("{}schedules", dialect.schema),
        order: ("schedules.created_at".into(), "schedules.uid".into()),
        terms,
        covered: None,
    };
    Listing {
        dialect,
        columns: columns.to_owned(),
        order: ("created_at", "uid"),
        ascending: false,
        arms: vec![arm],
    }
}
