-- Questions to people, who is asked, and what people are told.

CREATE TABLE interventions (
    namespace_id    TEXT    NOT NULL,
    intervention_id BLOB    NOT NULL,
    version         INTEGER NOT NULL,
    body            TEXT    NOT NULL, -- JSON
    due_at          INTEGER NOT NULL, -- the place in every list; what has no time is last
    state           INTEGER NOT NULL,
    next_at         INTEGER,          -- when time has something to do with it
    severity        INTEGER,
    run_id          BLOB    NOT NULL,
    kind            INTEGER NOT NULL,
    PRIMARY KEY (namespace_id, intervention_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX interventions_due ON interventions (next_at, intervention_id) WHERE next_at IS NOT NULL;
CREATE INDEX interventions_by_state ON interventions (namespace_id, state, due_at, intervention_id);
CREATE INDEX interventions_by_type ON interventions (namespace_id, state, kind, due_at, intervention_id);
CREATE INDEX interventions_by_severity ON interventions (namespace_id, state, severity, due_at, intervention_id);
CREATE INDEX interventions_by_run ON interventions (namespace_id, run_id, due_at, intervention_id);

CREATE TABLE intervention_assignees (
    namespace_id    TEXT    NOT NULL,
    intervention_id BLOB    NOT NULL,
    assignee        TEXT    NOT NULL,
    state           INTEGER NOT NULL,
    due_at          INTEGER NOT NULL,
    PRIMARY KEY (namespace_id, intervention_id, assignee)
) STRICT, WITHOUT ROWID;
CREATE INDEX assignees_by_state ON intervention_assignees
    (namespace_id, assignee, state, due_at, intervention_id);

CREATE TABLE notices (
    namespace_id    TEXT    NOT NULL,
    notice_id       TEXT    NOT NULL, -- question, message, recipient and channel
    state           INTEGER NOT NULL,
    attempts        INTEGER NOT NULL,
    next_at         INTEGER,
    last_error      TEXT,
    sent_at         INTEGER,
    intervention_id BLOB    NOT NULL,
    channel         INTEGER NOT NULL,
    recipient       TEXT    NOT NULL,
    message         INTEGER NOT NULL,
    fields          TEXT    NOT NULL, -- JSON
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (namespace_id, notice_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX notices_due ON notices (next_at, notice_id) WHERE next_at IS NOT NULL;
CREATE INDEX notices_of ON notices (namespace_id, intervention_id, created_at, notice_id);
