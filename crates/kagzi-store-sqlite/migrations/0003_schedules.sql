-- Schedules: what is wanted (plan, input) and how far it has come (state). Both are small but for the input.

CREATE TABLE schedules (
    namespace_id  TEXT    NOT NULL,
    schedule_id   TEXT    NOT NULL,
    uid           BLOB    NOT NULL, -- another one when a schedule is deleted and made again
    version       INTEGER NOT NULL,
    workflow_type TEXT    NOT NULL,
    plan          TEXT    NOT NULL, -- JSON
    state         TEXT    NOT NULL, -- JSON
    paused        INTEGER NOT NULL,
    next_at       INTEGER,          -- something to do from here on; NULL = nothing
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    input         BLOB    NOT NULL,
    content_type  TEXT    NOT NULL,
    PRIMARY KEY (namespace_id, schedule_id)
) STRICT;

CREATE INDEX schedules_due ON schedules (next_at, uid) WHERE next_at IS NOT NULL;
CREATE INDEX schedules_listed ON schedules (namespace_id, created_at, uid);

ALTER TABLE runs ADD COLUMN schedule_id TEXT; -- the schedule that started it
CREATE INDEX runs_scheduled ON runs (namespace_id, schedule_id, created_at, run_id) WHERE schedule_id IS NOT NULL;
