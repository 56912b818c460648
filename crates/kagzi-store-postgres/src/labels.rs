//! Labels: the statement about their table.

use kagzi_store::{LabelRow, label};

use crate::{
    session::Session,
    write::{Columns, Sending, column, send},
};

kagzi_store::statements! {
/// Every statement about labels; a test prepares each on a real database.
STATEMENTS:

const PUT_LABELS: &str = concat!(
    "INSERT INTO kagzi.run_labels (",
    label!(inserted),
    ")
 SELECT *
   FROM unnest(",
    label!(arrays),
    ")
     ON CONFLICT (namespace_id, run_id, name) DO UPDATE
    SET ",
    label!(set_excluded)
);
}

/// The statement that writes labels; each replaces the row of the same run and name.
pub fn statements(session: &Session, mut labels: Vec<LabelRow>) -> Option<Sending<'_>> {
    labels.sort_unstable_by(|a, b| (a.run, &a.name).cmp(&(b.run, &b.name)));
    if labels.is_empty() {
        return None;
    }
    Some(Box::pin(async move { send(session, PUT_LABELS, columns(&labels)).await }))
}

fn columns(labels: &[LabelRow]) -> Columns<'_> {
    let columns: [_; label!(inserted_width)] = [
        column(labels, |label| &*label.namespace),
        column(labels, |label| label.run.0),
        column(labels, |label| &*label.name),
        column(labels, |label| &*label.value),
        column(labels, |label| label.finished_at.map(|at| at.0)),
        column(labels, |label| label.created_at.0),
    ];
    columns.into()
}
