-- Listing with a million runs: an index behind every filter, and none that an ordinary run pays for twice. The
-- reasons and what each costs are those of the SQLite store, where they could be measured apart. The indexes themselves
-- follow, each a migration of its own that holds up no writer (`migrate.rs`).

DROP INDEX kagzi.runs_listed;

-- In the order of bytes, whatever the database's language: a prefix is then a range of the index.
ALTER TABLE kagzi.runs ALTER COLUMN business_id TYPE TEXT COLLATE "C";

-- Runs that retention has deleted and whose events are still to go, piece by piece.
CREATE TABLE kagzi.retired_runs (
    namespace_id TEXT NOT NULL,
    run_id       UUID NOT NULL,
    PRIMARY KEY (namespace_id, run_id)
) WITH (
    -- Rows live for a sweep or two: clean up by their number, so that looking for the next one stays short.
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_scale_factor = 0.0
);
