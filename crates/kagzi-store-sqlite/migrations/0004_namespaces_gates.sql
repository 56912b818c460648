-- What operators set: namespaces with their defaults, and gates before their queues and types.

CREATE TABLE namespaces (
    namespace_id  TEXT    NOT NULL PRIMARY KEY,
    description   TEXT    NOT NULL,
    disabled_by   TEXT,              -- the three are set together
    disabled_note TEXT,
    disabled_at   INTEGER,
    defaults      TEXT    NOT NULL,  -- retry policy and timeouts that a run inherits (JSON)
    retention_ms  INTEGER,           -- of finished runs; NULL = the server's
    handler_queue TEXT,              -- of the failure handler, when no worker in the registry says
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    version       INTEGER NOT NULL   -- rises with every change here and of the namespace's gates
) STRICT, WITHOUT ROWID;

INSERT INTO namespaces (namespace_id, description, defaults, created_at, updated_at, version)
VALUES ('default', '', '{}', unixepoch() * 1000000, unixepoch() * 1000000, 1);

-- A gate without a type stands before the whole queue, one without a queue before the whole namespace.
CREATE TABLE gates (
    namespace_id   TEXT    NOT NULL,
    task_queue     TEXT    NOT NULL,
    workflow_type  TEXT    NOT NULL,
    paused_by      TEXT,              -- the three are set together
    paused_note    TEXT,
    paused_at      INTEGER,
    max_concurrent INTEGER,           -- leases at once; NULL = no limit
    updated_at     INTEGER NOT NULL,
    PRIMARY KEY (namespace_id, task_queue, workflow_type)
) STRICT, WITHOUT ROWID;

-- Workers that will be forgotten; 3 = offline.
CREATE INDEX workers_offline ON workers (deregistered_at) WHERE status = 3;
