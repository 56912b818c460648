-- Listing with a million runs: an index behind every filter, and none that an ordinary run pays for twice.
--
-- Measured with cachegrind (instructions per run of three steps, 3,000 runs, through Python's driver, whose own share
-- is in the base of 224,300): runs_finished 7,100; runs_by_status 3,400, although such a run is never in it; the two
-- wide columns of runs_listed 300. An index on the type and one on the queue would have cost 7,100 and 7,700, one
-- that holds all living runs by status 10,900: they are not here.

-- Runs by creation, newest first. Type and queue never change, so they ride along: a filter by them walks the index
-- and touches no row that it does not show. 0.2 s over a million runs when nothing matches; usually a page's worth.
DROP INDEX runs_listed;
CREATE INDEX runs_listed ON runs (namespace_id, created_at, run_id, workflow_type, task_queue);

-- Runs by their end: for listing, and for retention, which deletes the oldest.
CREATE INDEX runs_finished ON runs (namespace_id, finished_at, run_id) WHERE finished_at IS NOT NULL;

-- Runs that wait, are paused or ended badly. Not the running (2), who are as many as workers have slots and are found
-- by runs_leased, and not the completed (4), who are most: a run that starts at once and completes is never in here.
CREATE INDEX runs_by_status ON runs (namespace_id, status, created_at, run_id) WHERE status NOT IN (2, 4);
CREATE INDEX runs_ended_badly ON runs (namespace_id, status, finished_at, run_id)
 WHERE finished_at IS NOT NULL AND status <> 4;

-- Runs that failed or wait to retry: nothing while all is well.
CREATE INDEX runs_error_code ON runs (namespace_id, error_code, created_at, run_id) WHERE error_code IS NOT NULL;
CREATE INDEX runs_error_code_finished ON runs (namespace_id, error_code, finished_at, run_id)
 WHERE error_code IS NOT NULL AND finished_at IS NOT NULL;

-- Runs that retention has deleted and whose events are still to go, piece by piece.
CREATE TABLE retired_runs (
    run_id       BLOB NOT NULL PRIMARY KEY,
    namespace_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;
