//! The SQL of listings, once for both dialects: which index leads, what is compared, where a page begins and
//! ends.
//!
//! A listing is one or more *arms*: selections in the listing's order, each led by one index. Several arms
//! are joined by `UNION ALL`, each cut to the page's length first, so that no arm is ever read or sorted
//! whole.

mod events;
mod interventions;
mod runs;
mod schedules;
mod workers;

pub use events::EventRows;
pub use interventions::interventions;
pub use runs::runs;
pub use schedules::schedules;
pub use workers::workers;

use kagzi_model::Name;
use uuid::Uuid;

use crate::{Cursor, Direction, PageRequest, TOTAL_MAX};

/// What differs between the dialects.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    /// Before the number of a bound value: `?` or `$`.
    pub marker: char,
    /// Before the name of a table: nothing, or `kagzi.`.
    pub schema: &'static str,
    /// Say which index leads. SQLite keeps no statistics and would guess; PostgreSQL knows better than we do.
    pub hints: bool,
    /// Events have a namespace of their own; else they belong to one through their run.
    pub events_namespaced: bool,
    /// The reason to wake in one word, as a column or an expression.
    pub reason: &'static str,
    /// A row of events has one of this kind.
    pub has_kind: fn(u8) -> String,
}

/// SQLite and what speaks like it.
pub const SQLITE: Dialect = Dialect {
    marker: '?',
    schema: "",
    hints: true,
    events_namespaced: false,
    reason: "json_extract(runs.state, '$.is')",
    has_kind: |kind| format!("instr(events.kinds, x'{kind:02X}') > 0"),
};

/// PostgreSQL and what speaks like it.
pub const POSTGRES: Dialect = Dialect {
    marker: '$',
    schema: "kagzi.",
    hints: false,
    events_namespaced: true,
    reason: "runs.reason",
    has_kind: |kind| format!("position('\\x{kind:02x}'::bytea IN events.kinds) > 0"),
};

/// A value to bind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Text(Name),
    Integer(i64),
    Id(Uuid),
}

/// A statement with the values it binds, the first first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub sql: String,
    pub bind: Vec<Value>,
}

/// A listing, ready to be cut into pages. Without arms nothing can match.
#[derive(Debug, Clone)]
pub struct Listing {
    dialect: Dialect,
    columns: String,
    /// Time and id as the columns of the result are called.
    order: (&'static str, &'static str),
    ascending: bool,
    arms: Vec<Arm>,
}

/// One selection in the listing's order.
#[derive(Debug, Clone)]
struct Arm {
    /// What follows FROM.
    source: String,
    /// Time and id, as they are called in the index that leads.
    order: (String, String),
    terms: Vec<Term>,
    /// The leading index holds all that is compared, so the rows are fetched after the page is cut: this is
    /// the table to fetch them from.
    covered: Option<String>,
}

/// One condition.
#[derive(Debug, Clone)]
enum Term {
    /// An expression, an operator and a value.
    Compare(String, &'static str, Value),
    /// Something without values.
    Plain(String),
    /// The run has this label too.
    Label(Name, Name),
    /// One of these is asked.
    Asked(Vec<Name>),
    /// None of these is asked.
    NotAsked(Vec<Name>),
}

impl Listing {
    /// Nothing can match.
    pub fn is_empty(&self) -> bool {
        self.arms.is_empty()
    }

    /// Up to `limit + 1` rows in reading direction.
    pub fn rows(&self, page: &PageRequest) -> Statement {
        let upwards = self.ascending == (page.direction == Direction::Next);
        let (operator, sort) = if upwards { (">", "ASC") } else { ("<", "DESC") };
        let mut bind = Vec::new();
        let arms: Vec<String> = self
            .arms
            .iter()
            .map(|arm| self.select(arm, page.from.map(|from| (operator, from)), sort, page.limit, &mut bind))
            .collect();
        let (time, id) = self.order;
        let sql = match arms.as_slice() {
            [arm] => arm.clone(),
            arms => {
                let arms: Vec<_> = arms
                    .iter()
                    .enumerate()
                    .map(|(number, arm)| format!("SELECT * FROM ({arm}) AS arm_{number}"))
                    .collect();
                let limit = self.bound(&mut bind, limit(page.limit));
                format!("{} ORDER BY {time} {sort}, {id} {sort} LIMIT {limit}", arms.join(" UNION ALL "))
            }
        };
        Statement { sql, bind }
    }

    /// Whether there are rows on the other side of the page's cursor; none for a page without one.
    pub fn other_side(&self, page: &PageRequest) -> Option<Statement> {
        let from = page.from?;
        let upwards = self.ascending == (page.direction == Direction::Next);
        let operator = if upwards { "<=" } else { ">=" };
        let mut bind = Vec::new();
        let arms: Vec<_> = self
            .arms
            .iter()
            .map(|arm| {
                let wanted = self.conditions(arm, Some((operator, from)), &mut bind);
                format!("EXISTS (SELECT 1 FROM {} WHERE {wanted})", arm.source)
            })
            .collect();
        Some(Statement { sql: format!("SELECT {}", arms.join(" OR ")), bind })
    }

    /// Counts what matches, one beyond [`TOTAL_MAX`] at most.
    pub fn count(&self) -> Statement {
        let mut bind = Vec::new();
        let arms: Vec<_> = self
            .arms
            .iter()
            .enumerate()
            .map(|(number, arm)| {
                let wanted = self.conditions(arm, None, &mut bind);
                let limit = self.bound(&mut bind, Value::Integer(TOTAL_MAX as i64 + 1));
                let arm = format!("SELECT 1 AS one FROM {} WHERE {wanted} LIMIT {limit}", arm.source);
                format!("SELECT one FROM ({arm}) AS arm_{number}")
            })
            .collect();
        Statement { sql: format!("SELECT count(*) FROM ({}) AS counted", arms.join(" UNION ALL ")), bind }
    }

    fn select(
        &self,
        arm: &Arm,
        beyond: Option<(&str, Cursor)>,
        sort: &str,
        rows: usize,
        bind: &mut Vec<Value>,
    ) -> String {
        let wanted = self.conditions(arm, beyond, bind);
        let (source, columns, (time, id)) = (&arm.source, &self.columns, &arm.order);
        let limit = self.bound(bind, limit(rows));
        let ordered = format!("WHERE {wanted} ORDER BY {time} {sort}, {id} {sort} LIMIT {limit}");
        match &arm.covered {
            None => format!("SELECT {columns} FROM {source} {ordered}"),
            Some(table) => {
                let page =
                    format!("SELECT {id} AS id, runs.namespace_id AS namespace FROM {source} {ordered}");
                // A cross join, because SQLite takes its sides in the order they are written.
                format!(
                    "SELECT {columns} FROM ({page}) AS page CROSS JOIN {table} \
                     WHERE runs.run_id = page.id AND runs.namespace_id = page.namespace \
                     ORDER BY {time} {sort}, {id} {sort}"
                )
            }
        }
    }

    fn conditions(&self, arm: &Arm, beyond: Option<(&str, Cursor)>, bind: &mut Vec<Value>) -> String {
        let mut conditions: Vec<_> = arm.terms.iter().map(|term| self.term(term, bind)).collect();
        if let Some((operator, Cursor { at, id })) = beyond {
            let (time_column, id_column) = &arm.order;
            let at = self.bound(bind, Value::Integer(at.0));
            let id = self.bound(bind, Value::Id(id));
            // The first condition follows from the second. Turso needs it to begin at the cursor.
            let bound = if operator.starts_with('<') { "<=" } else { ">=" };
            conditions.push(format!(
                "{time_column} {bound} {at} AND ({time_column}, {id_column}) {operator} ({at}, {id})"
            ));
        }
        conditions.join(" AND ")
    }

    fn term(&self, term: &Term, bind: &mut Vec<Value>) -> String {
        match term {
            Term::Compare(column, operator, value) => {
                format!("{column} {operator} {}", self.bound(bind, value.clone()))
            }
            Term::Plain(text) => text.clone(),
            Term::Label(name, value) => {
                let schema = self.dialect.schema;
                let name = self.bound(bind, Value::Text(name.clone()));
                let value = self.bound(bind, Value::Text(value.clone()));
                format!(
                    "EXISTS (SELECT 1 FROM {schema}run_labels AS other \
                     WHERE other.namespace_id = runs.namespace_id AND other.run_id = runs.run_id \
                     AND other.name = {name} AND other.value = {value})"
                )
            }
            Term::Asked(names) => self.asked(names, bind),
            Term::NotAsked(names) => format!("NOT {}", self.asked(names, bind)),
        }
    }

    fn asked(&self, names: &[Name], bind: &mut Vec<Value>) -> String {
        let schema = self.dialect.schema;
        let names: Vec<_> = names.iter().map(|name| self.bound(bind, Value::Text(name.clone()))).collect();
        format!(
            "EXISTS (SELECT 1 FROM {schema}intervention_assignees AS other \
             WHERE other.namespace_id = interventions.namespace_id \
             AND other.intervention_id = interventions.intervention_id AND other.assignee IN ({}))",
            names.join(", ")
        )
    }

    fn bound(&self, bind: &mut Vec<Value>, value: Value) -> String {
        bind.push(value);
        format!("{}{}", self.dialect.marker, bind.len())
    }
}

/// One more than asked for tells whether there are more.
fn limit(rows: usize) -> Value {
    Value::Integer(i64::try_from(rows).unwrap_or(i64::MAX).saturating_add(1))
}
