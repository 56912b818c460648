-- Labels, and what listing filters by.

-- As JSON on the row, for reading it whole; NULL for the many runs that have none, which costs nothing.
ALTER TABLE runs ADD COLUMN labels TEXT;
-- The code of the failure that ended the run, or that it waits to retry. NULL while all is well.
ALTER TABLE runs ADD COLUMN error_code TEXT;

UPDATE runs
   SET error_code = json_extract(state, '$.failure.code')
 WHERE json_extract(state, '$.failure.code') IS NOT NULL;

-- One row per label, for finding runs by it. Written only when a run has labels: when they are set and when the run
-- ends, so that a page of one label's runs is one walk along an index in either order.
CREATE TABLE run_labels (
    run_id       BLOB    NOT NULL,
    name         TEXT    NOT NULL,
    namespace_id TEXT    NOT NULL,
    value        TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,  -- of the run
    finished_at  INTEGER,
    PRIMARY KEY (run_id, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX run_labels_created ON run_labels (namespace_id, name, value, created_at, run_id);
CREATE INDEX run_labels_finished ON run_labels (namespace_id, name, value, finished_at, run_id)
 WHERE finished_at IS NOT NULL;
