-- A run that continues in place begins a new generation: its history counts from there, and what lies before is
-- deleted. Both are NULL for a run that never did, and never written then.
ALTER TABLE kagzi.runs ADD COLUMN generation bigint;
ALTER TABLE kagzi.runs ADD COLUMN first_seq bigint; -- the event with which the living generation begins

-- Rows of events that are still to go: those of the run below this number, but for the first row and for those
-- that hold one of the kept events.
CREATE TABLE kagzi.old_generations (
    namespace_id TEXT     NOT NULL,
    run_id       UUID     NOT NULL,
    below        bigint   NOT NULL,
    kept         bigint[] NOT NULL,
    PRIMARY KEY (namespace_id, run_id)
) WITH (
    -- Rows live for a commit or two: clean up by their number.
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_scale_factor = 0.0
);
