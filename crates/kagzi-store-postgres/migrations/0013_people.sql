-- Questions to people, who is asked, and what people are told.

CREATE TABLE kagzi.interventions (
    namespace_id    TEXT COLLATE "C" NOT NULL,
    intervention_id UUID     NOT NULL,
    version         BIGINT   NOT NULL,
    body            TEXT     NOT NULL, -- JSON
    due_at          BIGINT   NOT NULL, -- the place in every list; what has no time is last
    state           SMALLINT NOT NULL,
    next_at         BIGINT,            -- when time has something to do with it
    severity        SMALLINT,
    run_id          UUID     NOT NULL,
    kind            SMALLINT NOT NULL,
    PRIMARY KEY (namespace_id, intervention_id)
);
CREATE INDEX interventions_due ON kagzi.interventions (next_at, intervention_id) WHERE next_at IS NOT NULL;
CREATE INDEX interventions_by_state ON kagzi.interventions (namespace_id, state, due_at, intervention_id);
CREATE INDEX interventions_by_type ON kagzi.interventions (namespace_id, state, kind, due_at, intervention_id);
CREATE INDEX interventions_by_severity ON kagzi.interventions
    (namespace_id, state, severity, due_at, intervention_id);
CREATE INDEX interventions_by_run ON kagzi.interventions (namespace_id, run_id, due_at, intervention_id);

CREATE TABLE kagzi.intervention_assignees (
    namespace_id    TEXT COLLATE "C" NOT NULL,
    intervention_id UUID     NOT NULL,
    assignee        TEXT COLLATE "C" NOT NULL,
    state           SMALLINT NOT NULL,
    due_at          BIGINT   NOT NULL,
    PRIMARY KEY (namespace_id, intervention_id, assignee)
);
CREATE INDEX assignees_by_state ON kagzi.intervention_assignees
    (namespace_id, assignee, state, due_at, intervention_id);

CREATE TABLE kagzi.notices (
    namespace_id    TEXT COLLATE "C" NOT NULL,
    notice_id       TEXT COLLATE "C" NOT NULL, -- question, message, recipient and channel
    state           SMALLINT NOT NULL,
    attempts        INTEGER  NOT NULL,
    next_at         BIGINT,
    last_error      TEXT,
    sent_at         BIGINT,
    intervention_id UUID     NOT NULL,
    channel         SMALLINT NOT NULL,
    recipient       TEXT     NOT NULL,
    message         SMALLINT NOT NULL,
    fields          TEXT     NOT NULL, -- JSON
    created_at      BIGINT   NOT NULL,
    PRIMARY KEY (namespace_id, notice_id)
);
CREATE INDEX notices_due ON kagzi.notices (next_at, notice_id) WHERE next_at IS NOT NULL;
CREATE INDEX notices_of ON kagzi.notices (namespace_id, intervention_id, created_at, notice_id);
