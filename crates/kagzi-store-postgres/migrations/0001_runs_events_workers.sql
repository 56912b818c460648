-- Hot and cold apart: `runs` is narrow and rewritten, `events` is append-only and holds every payload.
-- The namespace comes first in every primary and unique key, so that a database which is spread over machines
-- (Citus, YugabyteDB, CockroachDB) can keep a namespace together. Times are microseconds and come from us.

CREATE TABLE kagzi.runs (
    namespace_id   TEXT     NOT NULL,
    run_id         UUID     NOT NULL,
    business_id    TEXT,              -- NULL when the caller chose none
    workflow_type  TEXT     NOT NULL,
    task_queue     TEXT     NOT NULL,
    status         SMALLINT NOT NULL,
    state          TEXT     NOT NULL, -- the reason to wake, or how the run ended (JSON; TEXT, since JSONB refuses \u0000)
    reason         TEXT,              -- the reason to wake in one word, and the code of the failure: for listing
    error_code     TEXT,
    version        BIGINT   NOT NULL,
    epoch          BIGINT   NOT NULL,
    due_at         BIGINT,            -- claimable from here on; NULL = not claimable
    sweep_at       BIGINT,            -- the server must act: lease end or deadline
    lease_worker   UUID,
    attempts       INTEGER  NOT NULL,
    dispatch_count INTEGER  NOT NULL,
    crashes        INTEGER  NOT NULL,
    created_at     BIGINT   NOT NULL,
    started_at     BIGINT,
    finished_at    BIGINT,
    deadline_at    BIGINT,
    options        TEXT     NOT NULL,
    PRIMARY KEY (namespace_id, run_id)
) WITH (
    -- A run is written about twice: leased when it starts, then ended. The room lets the second version land on
    -- the page of the first, so that one page is dirtied, not two.
    fillfactor = 85,
    -- Dead entries of the partial indexes below are what a claim wades through, so clean up by their number
    -- (10,000 and one in a hundred), not at the default of one in five, which is 200,000 for a million runs.
    autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_analyze_threshold = 10000,
    autovacuum_analyze_scale_factor = 0.02
);

-- One run per business id.
CREATE UNIQUE INDEX runs_business ON kagzi.runs (namespace_id, business_id) WHERE business_id IS NOT NULL;
-- Claims: by type, so that a type nobody registers never stands in the way. Finished runs are not in it. The id is
-- the tie-break: runs that are due at the same moment go out in the order they came, on every engine.
CREATE INDEX runs_due ON kagzi.runs (namespace_id, task_queue, workflow_type, due_at, run_id)
 WHERE due_at IS NOT NULL;
-- Lease ends and deadlines, of all namespaces: a sweep asks each shard.
CREATE INDEX runs_sweep ON kagzi.runs (sweep_at, run_id) WHERE sweep_at IS NOT NULL;
-- What a worker holds.
CREATE INDEX runs_leased ON kagzi.runs (lease_worker, run_id) WHERE lease_worker IS NOT NULL;
-- Listing, newest first.
CREATE INDEX runs_listed ON kagzi.runs (namespace_id, created_at, run_id);

CREATE TABLE kagzi.events (
    namespace_id TEXT     NOT NULL,
    run_id       UUID     NOT NULL,
    seq          BIGINT   NOT NULL,
    at           BIGINT   NOT NULL,
    kind         SMALLINT NOT NULL,
    step         TEXT,              -- the path, for events about a step
    detail       TEXT     NOT NULL, -- the event without its payload (JSON)
    payload      BYTEA,
    content_type TEXT,
    PRIMARY KEY (namespace_id, run_id, seq)
) WITH (
    -- Never updated: nothing dies here until retention deletes. Freeze and analyze now and then.
    fillfactor = 100,
    autovacuum_vacuum_insert_scale_factor = 0.2,
    autovacuum_analyze_scale_factor = 0.05
);

-- At most one recorded result per step: enforced here, not by luck. 4 = step_completed.
CREATE UNIQUE INDEX events_one_result ON kagzi.events (namespace_id, run_id, step) WHERE kind = 4;

CREATE TABLE kagzi.workers (
    namespace_id    TEXT     NOT NULL,
    worker_id       UUID     NOT NULL,
    task_queue      TEXT     NOT NULL,
    hostname        TEXT     NOT NULL,
    pid             INTEGER  NOT NULL,
    version         TEXT     NOT NULL,
    workflow_types  TEXT     NOT NULL, -- JSON array
    labels          TEXT     NOT NULL, -- JSON object
    max_concurrent  BIGINT   NOT NULL,
    status          SMALLINT NOT NULL,
    completed_total BIGINT   NOT NULL,
    failed_total    BIGINT   NOT NULL,
    registered_at   BIGINT   NOT NULL,
    heartbeat_at    BIGINT   NOT NULL,
    deregistered_at BIGINT,
    PRIMARY KEY (namespace_id, worker_id)
) WITH (
    -- Rewritten with every heartbeat and every batch of finished runs. No index has a column that these change
    -- (that is why `workers_alive` does not hold the heartbeat), so they stay on the page (HOT) and need no vacuum.
    fillfactor = 50,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_scale_factor = 0.1
);

-- By id alone: a heartbeat names no namespace. Not unique, which a spread database could not check.
CREATE INDEX workers_by_id ON kagzi.workers (worker_id);
CREATE INDEX workers_listed ON kagzi.workers (namespace_id, registered_at, worker_id);
-- Only workers that can become stale; 3 = offline.
CREATE INDEX workers_alive ON kagzi.workers (worker_id) WHERE status <> 3;
