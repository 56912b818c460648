-- Listing with a million runs: an index behind every filter, and none that an ordinary run pays for twice. The
-- reasons and what each costs are those of the SQLite store, where they could be measured apart.

-- Runs by creation, newest first. Type and queue never change, so they ride along: a filter by them walks the index
-- and touches no row that it does not show.
DROP INDEX kagzi.runs_listed;
CREATE INDEX runs_listed ON kagzi.runs (namespace_id, created_at, run_id) INCLUDE (workflow_type, task_queue);

-- Runs by their end: for listing, and for retention, which deletes the oldest.
CREATE INDEX runs_finished ON kagzi.runs (namespace_id, finished_at, run_id) WHERE finished_at IS NOT NULL;

-- Runs that wait, are paused or ended badly. Not the running (2), who are as many as workers have slots and are found
-- by runs_leased, and not the completed (4), who are most: a run that starts at once and completes is never in here.
CREATE INDEX runs_by_status ON kagzi.runs (namespace_id, status, created_at, run_id) WHERE status NOT IN (2, 4);
CREATE INDEX runs_ended_badly ON kagzi.runs (namespace_id, status, finished_at, run_id)
 WHERE finished_at IS NOT NULL AND status <> 4;

-- Runs that failed or wait to retry: nothing while all is well.
CREATE INDEX runs_error_code ON kagzi.runs (namespace_id, error_code, created_at, run_id)
 WHERE error_code IS NOT NULL;
CREATE INDEX runs_error_code_finished ON kagzi.runs (namespace_id, error_code, finished_at, run_id)
 WHERE error_code IS NOT NULL AND finished_at IS NOT NULL;

-- In the order of bytes, whatever the database's language: a prefix is then a range of the index.
ALTER TABLE kagzi.runs ALTER COLUMN business_id TYPE TEXT COLLATE "C";

-- Runs that retention has deleted and whose events are still to go, piece by piece.
CREATE TABLE kagzi.retired_runs (
    namespace_id TEXT NOT NULL,
    run_id       UUID NOT NULL,
    PRIMARY KEY (namespace_id, run_id)
);
