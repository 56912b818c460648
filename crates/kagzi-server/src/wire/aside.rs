//! Rows that are set aside, for people.

use kagzi_proto::v1;
use kagzi_store::Aside;

use super::timestamp;

/// Rows that are named; a person reads no more.
const ROWS_MAX: usize = 100;

pub fn rows(aside: &Aside) -> Vec<v1::SetAsideRow> {
    let row = |(row, note): (kagzi_store::AsideRow, kagzi_store::AsideNote)| v1::SetAsideRow {
        kind: v1::SetAsideKind::from_word(row.kind()).unwrap_or_default().into(),
        name: row.to_string(),
        why: note.why,
        since: Some(timestamp(note.since)),
    };
    aside.list(ROWS_MAX).into_iter().map(row).collect()
}
