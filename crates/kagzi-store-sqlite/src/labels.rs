//! Labels: the statement about their table.

use kagzi_store::{LabelRow, StoreError, label};

use crate::{
    db::Db,
    value::{Value, bind},
};

kagzi_store::statements! {
/// Every statement about labels; a test prepares each on a real database.
STATEMENTS:

const PUT_LABEL: &str = concat!(
    "INSERT INTO run_labels (",
    label!(inserted),
    ")
 VALUES (",
    label!(values),
    ")
     ON CONFLICT (run_id, name) DO UPDATE
    SET ",
    label!(set_excluded)
);
}

/// Writes labels; each replaces the row of the same run and name.
pub fn write(db: &Db, labels: &[LabelRow]) -> Result<(), StoreError> {
    for label in labels {
        let LabelRow { namespace, run, name, value, created_at, finished_at } = label;
        let values: &[Value<'_>; label!(inserted_width)] =
            bind![namespace, run, name, value, finished_at, created_at];
        db.execute(PUT_LABEL, values)?;
    }
    Ok(())
}
