-- Labels of runs.

-- As JSON on the row, for reading it whole; NULL for the many runs that have none: one bit.
ALTER TABLE kagzi.runs ADD COLUMN labels TEXT;

-- One row per label, for finding runs by it. Written only when a run has labels: when they are set and when the run
-- ends, so that a page of one label's runs is one walk along an index in either order.
CREATE TABLE kagzi.run_labels (
    namespace_id TEXT   NOT NULL,
    run_id       UUID   NOT NULL,
    name         TEXT   NOT NULL,
    value        TEXT   NOT NULL,
    created_at   BIGINT NOT NULL, -- of the run
    finished_at  BIGINT,
    PRIMARY KEY (namespace_id, run_id, name)
);

CREATE INDEX run_labels_created ON kagzi.run_labels (namespace_id, name, value, created_at, run_id);
CREATE INDEX run_labels_finished ON kagzi.run_labels (namespace_id, name, value, finished_at, run_id)
 WHERE finished_at IS NOT NULL;
