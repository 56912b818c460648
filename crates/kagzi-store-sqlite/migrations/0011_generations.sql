-- A run that continues in place begins a new generation: its history counts from there, and what lies before is
-- deleted. Both are NULL for a run that never did, and never written then.
ALTER TABLE runs ADD COLUMN generation INTEGER;
ALTER TABLE runs ADD COLUMN first_seq INTEGER; -- the event with which the living generation begins

-- Rows of events that are still to go: those of the run below this number, but for the first row and for those
-- that hold one of the kept events (JSON array).
CREATE TABLE old_generations (
    run_id BLOB    NOT NULL PRIMARY KEY,
    below  INTEGER NOT NULL,
    kept   TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
