//! The labels of a run as rows of their own, by which runs are found.

use kagzi_model::{Name, RunId};

use crate::{LabelRow, cache::Cache};

/// All labels of a run, as its row has them now.
pub fn label_rows(id: RunId, cache: &Cache) -> Vec<LabelRow> {
    let run = &cache.get(id).expect("a dirty run is known").aggregate.run;
    let row = |(name, value): (&Name, &Name)| LabelRow {
        namespace: run.namespace.clone(),
        run: run.id,
        name: name.clone(),
        value: value.clone(),
        created_at: run.created_at,
        finished_at: run.finished_at,
    };
    run.labels.iter().map(row).collect()
}
