-- Rises with every change of the row. A write names the version that it replaces, as with every other table:
-- which of two changes of a worker wins is decided by the model, not by SQL. (`version` is the version of the
-- worker's program.)
ALTER TABLE workers ADD COLUMN row_version INTEGER NOT NULL DEFAULT 1;
