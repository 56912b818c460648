//! Runs. Every filter has an index that leads; the migrations say what each of them costs.

use kagzi_model::{Name, Reason, Status};
use uuid::Uuid;

use super::{Arm, Dialect, Listing, Term, Value};
use crate::{OrderBy, RunFilter, TimeRange};

/// The listing of runs that match.
pub fn runs(dialect: Dialect, columns: &str, namespace: &Name, filter: &RunFilter) -> Listing {
    let query = Query { dialect, namespace, filter };
    Listing {
        dialect,
        columns: columns.to_owned(),
        order: match filter.order.by {
            OrderBy::CreatedAt => ("created_at", "run_id"),
            OrderBy::FinishedAt => ("finished_at", "run_id"),
        },
        ascending: filter.order.ascending,
        arms: query.arms(),
    }
}

struct Query<'a> {
    dialect: Dialect,
    namespace: &'a Name,
    filter: &'a RunFilter,
}

impl Query<'_> {
    /// The narrowest index that a filter names leads.
    fn arms(&self) -> Vec<Arm> {
        let filter = self.filter;
        let Some(statuses) = self.statuses() else { return Vec::new() };
        if let Some(id) = &filter.business_id {
            return self.business_id(id, &statuses);
        }
        if filter.business_id_prefix.is_some() {
            return vec![self.runs("runs_business", self.within(&statuses))];
        }
        if let Some(((name, value), others)) = filter.labels.split_first() {
            return vec![self.labelled(name, value, others, &statuses)];
        }
        if filter.schedule.is_some() {
            let index = self.by_order("runs_scheduled", "runs_scheduled_finished");
            return vec![self.runs(index, self.within(&statuses))];
        }
        if filter.error_code.is_some() {
            let index = self.by_order("runs_error_code", "runs_error_code_finished");
            return vec![self.runs(index, self.within(&statuses))];
        }
        if !statuses.is_empty() {
            return statuses.into_iter().filter_map(|status| self.of_status(status)).collect();
        }
        if !filter.finished.is_open() || filter.order.by == OrderBy::FinishedAt {
            // Listed by creation, what ended in a range is sorted: it is what somebody asked to look at.
            return vec![self.runs("runs_finished", self.terms())];
        }
        let mut arm = self.runs("runs_listed", self.terms());
        if filter.workflow_type.is_some() || filter.task_queue.is_some() {
            arm.covered = Some(format!("{}runs", self.dialect.schema));
        }
        vec![arm]
    }

    /// The statuses that can match, empty = all; none when nothing can, because the reason contradicts them.
    fn statuses(&self) -> Option<Vec<Status>> {
        let mut wanted = self.filter.statuses.clone();
        wanted.sort_unstable();
        wanted.dedup();
        let Some(reason) = &self.filter.reason else { return Some(wanted) };
        let status = Reason::from_name(reason)?.status();
        (wanted.is_empty() || wanted.contains(&status)).then(|| vec![status])
    }

    fn business_id(&self, id: &Name, statuses: &[Status]) -> Vec<Arm> {
        let mut terms = self.within(statuses);
        terms.push(text("runs.business_id", "=", id));
        terms.push(Term::Plain("runs.business_id IS NOT NULL".into()));
        let mut arms = vec![self.runs("runs_business", terms)];
        // The id of a run without a business id of its own stands in for one.
        if let Some(run) = Uuid::try_parse(id).ok().filter(|run| run.to_string() == **id) {
            let mut terms = self.within(statuses);
            terms.push(Term::Compare("runs.run_id".into(), "=", Value::Id(run)));
            terms.push(Term::Plain("runs.business_id IS NULL".into()));
            arms.push(Arm { source: format!("{}runs", self.dialect.schema), ..self.runs("", terms) });
        }
        arms
    }

    fn labelled(&self, name: &Name, value: &Name, others: &[(Name, Name)], statuses: &[Status]) -> Arm {
        let mut terms = vec![
            text("label.namespace_id", "=", self.namespace),
            text("label.name", "=", name),
            text("label.value", "=", value),
            Term::Plain("runs.namespace_id = label.namespace_id".into()),
            Term::Plain("runs.run_id = label.run_id".into()),
        ];
        terms.extend(self.within(statuses));
        terms.extend(others.iter().map(|(name, value)| Term::Label(name.clone(), value.clone())));
        let time = self.time();
        if self.filter.order.by == OrderBy::FinishedAt {
            terms.push(Term::Plain(format!("label.{time} IS NOT NULL")));
        }
        let schema = self.dialect.schema;
        let index = self.by_order("run_labels_created", "run_labels_finished");
        Arm {
            // A cross join, because SQLite takes its sides in the order they are written.
            source: format!("{schema}run_labels AS label{} CROSS JOIN {schema}runs", self.hint(index)),
            order: (format!("label.{time}"), "label.run_id".into()),
            terms,
            covered: None,
        }
    }

    /// One status, by the index that has it. None when a run of this status has no place in the order.
    fn of_status(&self, status: Status) -> Option<Arm> {
        let mut terms = self.terms();
        terms.push(Term::Plain(format!("runs.status = {}", status as u8)));
        let by_end = self.filter.order.by == OrderBy::FinishedAt;
        let index = match status {
            Status::Running | Status::Pending | Status::Sleeping | Status::Paused | Status::Compensating
                if by_end =>
            {
                return None;
            }
            // As many as workers have slots: sorting them costs less than an index that every run moves
            // through.
            Status::Running => {
                terms.push(Term::Plain("runs.lease_worker IS NOT NULL".into()));
                "runs_leased"
            }
            // Most runs complete, so the walk along all of them meets few others.
            Status::Completed => self.by_order("runs_listed", "runs_finished"),
            Status::Failed | Status::Cancelled | Status::TimedOut if by_end => {
                terms.push(Term::Plain("runs.status <> 4".into()));
                "runs_ended_badly"
            }
            Status::Pending
            | Status::Sleeping
            | Status::Failed
            | Status::Cancelled
            | Status::TimedOut
            | Status::Paused
            | Status::Compensating => {
                terms.push(Term::Plain("runs.status NOT IN (2, 4)".into()));
                "runs_by_status"
            }
        };
        Some(self.runs(index, terms))
    }

    fn runs(&self, index: &str, terms: Vec<Term>) -> Arm {
        Arm {
            source: format!("{}runs{}", self.dialect.schema, self.hint(index)),
            order: (format!("runs.{}", self.time()), "runs.run_id".into()),
            terms,
            covered: None,
        }
    }

    /// The conditions that are compared whatever leads, with any of these statuses.
    fn within(&self, statuses: &[Status]) -> Vec<Term> {
        let mut terms = self.terms();
        if !statuses.is_empty() {
            let numbers: Vec<_> = statuses.iter().map(|status| (*status as u8).to_string()).collect();
            terms.push(Term::Plain(format!("runs.status IN ({})", numbers.join(", "))));
        }
        terms
    }

    fn terms(&self) -> Vec<Term> {
        let filter = self.filter;
        let mut terms = vec![text("runs.namespace_id", "=", self.namespace)];
        let named = [
            ("runs.workflow_type", &filter.workflow_type),
            ("runs.task_queue", &filter.task_queue),
            ("runs.error_code", &filter.error_code),
            ("runs.schedule_id", &filter.schedule),
            (self.dialect.reason, &filter.reason),
        ];
        terms.extend(named.into_iter().filter_map(|(column, name)| Some(text(column, "=", name.as_ref()?))));
        if let Some(prefix) = &filter.business_id_prefix {
            terms.push(text("runs.business_id", ">=", prefix));
            terms.extend(end_of(prefix).map(|end| text("runs.business_id", "<", &end)));
        }
        // Said, although it follows: Turso takes a partial index only when its condition is spelled out.
        let partial = [
            ("runs.error_code", filter.error_code.is_some()),
            ("runs.schedule_id", filter.schedule.is_some()),
            ("runs.business_id", filter.business_id_prefix.is_some()),
        ];
        let partial = partial.into_iter().filter(|(_, wanted)| *wanted);
        terms.extend(partial.map(|(column, _)| Term::Plain(format!("{column} IS NOT NULL"))));
        terms.extend(range("runs.created_at", filter.created));
        terms.extend(range("runs.finished_at", filter.finished));
        if filter.order.by == OrderBy::FinishedAt || !filter.finished.is_open() {
            terms.push(Term::Plain("runs.finished_at IS NOT NULL".into()));
        }
        terms
    }

    fn time(&self) -> &'static str {
        self.by_order("created_at", "finished_at")
    }

    fn by_order(&self, created: &'static str, finished: &'static str) -> &'static str {
        match self.filter.order.by {
            OrderBy::CreatedAt => created,
            OrderBy::FinishedAt => finished,
        }
    }

    fn hint(&self, index: &str) -> String {
        if self.dialect.hints { format!(" INDEXED BY {index}") } else { String::new() }
    }
}

fn text(column: &str, operator: &'static str, name: &Name) -> Term {
    Term::Compare(column.to_owned(), operator, Value::Text(name.clone()))
}

fn range(column: &str, range: TimeRange) -> impl Iterator<Item = Term> {
    let bounds = [(">=", range.from), ("<", range.to)];
    let term = |(operator, at): (&'static str, Option<kagzi_model::Timestamp>)| {
        at.map(|at| Term::Compare(column.to_owned(), operator, Value::Integer(at.0)))
    };
    bounds.map(term).into_iter().flatten()
}

/// The first text, in the order of bytes, that is behind everything with this prefix; none when there is no
/// such.
fn end_of(prefix: &str) -> Option<Name> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let next = (last..=char::MAX).nth(1);
        if let Some(next) = next {
            chars.push(next);
            return Some(Name::from(chars.into_iter().collect::<String>()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::SQLITE;

    #[test]
    fn a_prefix_ends_where_the_next_begins() {
        assert_eq!(end_of("order-"), Some("order.".into()));
        assert_eq!(end_of("a\u{d7ff}"), Some("a\u{e000}".into()));
        assert_eq!(end_of("a\u{10ffff}"), Some("b".into()));
        assert_eq!(end_of("\u{10ffff}"), None);
    }

    #[test]
    fn what_cannot_match_asks_the_database_nothing() {
        let contradiction = RunFilter {
            statuses: vec![Status::Failed],
            reason: Some("leased".into()),
            ..RunFilter::default()
        };
        let mut no_place = RunFilter { statuses: vec![Status::Sleeping], ..RunFilter::default() };
        no_place.order.by = OrderBy::FinishedAt;

        assert!(runs(SQLITE, "*", &"n".into(), &contradiction).is_empty());
        assert!(runs(SQLITE, "*", &"n".into(), &no_place).is_empty());
    }
}
