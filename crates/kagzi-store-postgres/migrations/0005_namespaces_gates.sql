-- What operators set: namespaces with their defaults, and gates before their queues and types. Names are compared
-- byte by byte, so that lists have the same order on every engine.

CREATE TABLE kagzi.namespaces (
    namespace_id  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    description   TEXT   NOT NULL,
    disabled_by   TEXT,              -- the three are set together
    disabled_note TEXT,
    disabled_at   BIGINT,
    defaults      TEXT   NOT NULL,   -- retry policy and timeouts that a run inherits (JSON)
    retention_ms  BIGINT,            -- of finished runs; NULL = the server's
    handler_queue TEXT,              -- of the failure handler, when no worker in the registry says
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    version       BIGINT NOT NULL    -- rises with every change here and of the namespace's gates
);

INSERT INTO kagzi.namespaces (namespace_id, description, defaults, created_at, updated_at, version)
SELECT 'default', '', '{}', at, at, 1
  FROM (SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint AS at) AS clock;

-- A gate without a type stands before the whole queue, one without a queue before the whole namespace.
CREATE TABLE kagzi.gates (
    namespace_id   TEXT COLLATE "C" NOT NULL,
    task_queue     TEXT COLLATE "C" NOT NULL,
    workflow_type  TEXT COLLATE "C" NOT NULL,
    paused_by      TEXT,              -- the three are set together
    paused_note    TEXT,
    paused_at      BIGINT,
    max_concurrent BIGINT,            -- leases at once, over all servers; NULL = no limit
    updated_at     BIGINT NOT NULL,
    PRIMARY KEY (namespace_id, task_queue, workflow_type)
);

-- What is leased behind a gate, counted while the gate is locked. Only leased runs are in it.
CREATE INDEX runs_leased_behind ON kagzi.runs (namespace_id, task_queue, workflow_type)
 WHERE lease_worker IS NOT NULL;
-- Workers that will be forgotten; 3 = offline. Heartbeats change none of its columns, so they stay on their page.
CREATE INDEX workers_offline ON kagzi.workers (deregistered_at) WHERE status = 3;
