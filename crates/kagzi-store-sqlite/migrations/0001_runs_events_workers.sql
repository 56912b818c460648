-- Hot and cold apart: `runs` is narrow and rewritten, `events` is append-only and holds every payload.

CREATE TABLE runs (
    namespace_id   TEXT    NOT NULL,
    run_id         BLOB    NOT NULL PRIMARY KEY,
    business_id    TEXT,              -- NULL when the caller chose none
    workflow_type  TEXT    NOT NULL,
    task_queue     TEXT    NOT NULL,
    status         INTEGER NOT NULL,
    state          TEXT    NOT NULL,  -- the reason to wake, or how the run ended (JSON)
    version        INTEGER NOT NULL,
    epoch          INTEGER NOT NULL,
    due_at         INTEGER,           -- claimable from here on; NULL = not claimable
    sweep_at       INTEGER,           -- the server must act: lease end or deadline
    lease_worker   BLOB,
    attempts       INTEGER NOT NULL,
    dispatch_count INTEGER NOT NULL,
    crashes        INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    started_at     INTEGER,
    finished_at    INTEGER,
    deadline_at    INTEGER,
    options        TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- One run per business id.
CREATE UNIQUE INDEX runs_business ON runs (namespace_id, business_id) WHERE business_id IS NOT NULL;
-- The key at the end of an index keeps the order of equals the same on every engine. For SQLite it is there anyway: a table
-- without rowid ends every index with its key.
-- Claims: by type, so that a type nobody registers never stands in the way.
CREATE INDEX runs_due ON runs (namespace_id, task_queue, workflow_type, due_at, run_id) WHERE due_at IS NOT NULL;
-- Lease ends and deadlines.
CREATE INDEX runs_sweep ON runs (sweep_at, run_id) WHERE sweep_at IS NOT NULL;
-- What a lost worker held.
CREATE INDEX runs_leased ON runs (lease_worker, run_id) WHERE lease_worker IS NOT NULL;

CREATE TABLE events (
    run_id       BLOB    NOT NULL,
    seq          INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    kind         INTEGER NOT NULL,
    step         TEXT,                -- the path, for events about a step
    detail       TEXT    NOT NULL,    -- the event without its payload (JSON)
    payload      BLOB,
    content_type TEXT,
    PRIMARY KEY (run_id, seq)
) STRICT, WITHOUT ROWID;

-- At most one recorded result per step: enforced here, not by luck. 4 = step_completed.
CREATE UNIQUE INDEX events_one_result ON events (run_id, step) WHERE kind = 4;

CREATE TABLE workers (
    namespace_id    TEXT    NOT NULL,
    worker_id       BLOB    NOT NULL PRIMARY KEY,
    task_queue      TEXT    NOT NULL,
    hostname        TEXT    NOT NULL,
    pid             INTEGER NOT NULL,
    version         TEXT    NOT NULL,
    workflow_types  TEXT    NOT NULL, -- JSON array
    labels          TEXT    NOT NULL, -- JSON object
    max_concurrent  INTEGER NOT NULL,
    status          INTEGER NOT NULL,
    completed_total INTEGER NOT NULL,
    failed_total    INTEGER NOT NULL,
    registered_at   INTEGER NOT NULL,
    heartbeat_at    INTEGER NOT NULL,
    deregistered_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX workers_listed ON workers (namespace_id, registered_at, worker_id);
-- Only workers that can become stale; 3 = offline.
CREATE INDEX workers_alive ON workers (heartbeat_at, worker_id) WHERE status <> 3;

-- Listing, newest first.
CREATE INDEX runs_listed ON runs (namespace_id, created_at, run_id);
