-- Schedules: what is wanted (plan, input) and how far it has come (state). Both are small but for the input, which
-- stays out of line when only the state changes.

CREATE TABLE kagzi.schedules (
    namespace_id  TEXT    NOT NULL,
    schedule_id   TEXT    NOT NULL,
    uid           UUID    NOT NULL, -- another one when a schedule is deleted and made again
    version       BIGINT  NOT NULL,
    workflow_type TEXT    NOT NULL,
    plan          TEXT    NOT NULL, -- JSON
    state         TEXT    NOT NULL, -- JSON
    paused        BOOLEAN NOT NULL,
    next_at       BIGINT,           -- something to do from here on; NULL = nothing
    created_at    BIGINT  NOT NULL,
    updated_at    BIGINT  NOT NULL,
    input         BYTEA   NOT NULL,
    content_type  TEXT    NOT NULL,
    PRIMARY KEY (namespace_id, schedule_id)
) WITH (
    -- Rewritten with every fire, and few.
    fillfactor = 50,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_scale_factor = 0.1
);

-- Of all namespaces: the scheduler asks each shard.
CREATE INDEX schedules_due ON kagzi.schedules (next_at, uid) WHERE next_at IS NOT NULL;
CREATE INDEX schedules_listed ON kagzi.schedules (namespace_id, created_at, uid);

ALTER TABLE kagzi.runs ADD COLUMN schedule_id TEXT; -- the schedule that started it
CREATE INDEX runs_scheduled ON kagzi.runs (namespace_id, schedule_id, created_at, run_id)
 WHERE schedule_id IS NOT NULL;
