//! Questions, the most urgent first: each state, and each person who is asked, is an arm with an index of its
//! own.

use kagzi_model::{Name, intervention::Severity};

use super::{Arm, Dialect, Listing, Term, Value};
use crate::InterventionFilter;

const SEVERITIES: [Severity; 3] = [Severity::Low, Severity::High, Severity::Critical];

/// The listing of questions that match.
pub fn interventions(
    dialect: Dialect,
    columns: &str,
    namespace: &Name,
    filter: &InterventionFilter,
) -> Listing {
    let mut arms = Vec::new();
    if let Some(run) = filter.run {
        // A run has few, so the rest is compared row by row.
        let states: Vec<String> = filter.states().iter().map(|state| (*state as i64).to_string()).collect();
        let mut terms = vec![
            Term::Compare("interventions.namespace_id".into(), "=", Value::Text(namespace.clone())),
            Term::Compare("interventions.run_id".into(), "=", Value::Id(run.0)),
            Term::Plain(format!("interventions.state IN ({})", states.join(", "))),
        ];
        terms.extend(narrowed("interventions", filter, None));
        if let Some(min) = filter.severity_min {
            let least = Value::Integer(min as i64);
            terms.push(Term::Compare("interventions.severity".into(), ">=", least));
        }
        if !filter.assignees.is_empty() {
            terms.push(Term::Asked(filter.assignees.clone()));
        }
        arms.push(arm(dialect, "interventions_by_run", terms));
    } else if filter.assignees.is_empty() {
        for state in filter.states() {
            let severities: Vec<Option<Severity>> = match filter.severity_min {
                None => vec![None],
                Some(min) => SEVERITIES.into_iter().filter(|severity| *severity >= min).map(Some).collect(),
            };
            for severity in severities {
                let mut terms = vec![
                    Term::Compare("interventions.namespace_id".into(), "=", Value::Text(namespace.clone())),
                    Term::Plain(format!("interventions.state = {}", state as i64)),
                ];
                terms.extend(narrowed("interventions", filter, severity));
                let index = match (severity, filter.kind) {
                    (Some(_), _) => "interventions_by_severity",
                    (None, Some(_)) => "interventions_by_type",
                    (None, None) => "interventions_by_state",
                };
                arms.push(arm(dialect, index, terms));
            }
        }
    } else {
        for state in filter.states() {
            for (at, name) in filter.assignees.iter().enumerate() {
                arms.push(mine(dialect, namespace, state as i64, (name, &filter.assignees[..at]), filter));
            }
        }
    }
    Listing {
        dialect,
        columns: columns.to_owned(),
        order: ("due_at", "intervention_id"),
        ascending: true,
        arms,
    }
}

fn arm(dialect: Dialect, index: &str, terms: Vec<Term>) -> Arm {
    let hint = if dialect.hints { format!(" INDEXED BY {index}") } else { String::new() };
    Arm {
        source: format!("{}interventions{hint}", dialect.schema),
        order: ("interventions.due_at".into(), "interventions.intervention_id".into()),
        terms,
        covered: None,
    }
}

/// What one person or group is asked, and none of those before.
fn mine(
    dialect: Dialect,
    namespace: &Name,
    state: i64,
    (name, before): (&Name, &[Name]),
    filter: &InterventionFilter,
) -> Arm {
    let schema = dialect.schema;
    let hint = if dialect.hints { " INDEXED BY assignees_by_state" } else { "" };
    let mut terms = vec![
        Term::Compare("mine.namespace_id".into(), "=", Value::Text(namespace.clone())),
        Term::Compare("mine.assignee".into(), "=", Value::Text(name.clone())),
        Term::Plain(format!("mine.state = {state}")),
        Term::Plain("interventions.namespace_id = mine.namespace_id".into()),
        Term::Plain("interventions.intervention_id = mine.intervention_id".into()),
    ];
    if let Some(at) = filter.due_before {
        terms.push(Term::Compare("mine.due_at".into(), "<=", Value::Integer(at.0)));
    }
    if let Some(kind) = filter.kind {
        terms.push(Term::Plain(format!("interventions.kind = {}", kind as i64)));
    }
    if let Some(min) = filter.severity_min {
        terms.push(Term::Plain(format!("interventions.severity >= {}", min as i64)));
    }
    if !before.is_empty() {
        terms.push(Term::NotAsked(before.to_vec()));
    }
    Arm {
        source: format!(
            "{schema}intervention_assignees AS mine{hint} CROSS JOIN {schema}interventions AS interventions"
        ),
        order: ("mine.due_at".into(), "mine.intervention_id".into()),
        terms,
        covered: None,
    }
}

fn narrowed(table: &str, filter: &InterventionFilter, severity: Option<Severity>) -> Vec<Term> {
    let mut terms = Vec::new();
    if let Some(severity) = severity {
        terms.push(Term::Plain(format!("{table}.severity = {}", severity as i64)));
    }
    if let Some(kind) = filter.kind {
        terms.push(Term::Plain(format!("{table}.kind = {}", kind as i64)));
    }
    if let Some(at) = filter.due_before {
        terms.push(Term::Compare(format!("{table}.due_at"), "<=", Value::Integer(at.0)));
    }
    terms
}
