-- Events that are published on topics, and the runs that wait for them.

-- An event is kept until it has expired and has reached everybody who waited for it. A topic is a name and a key; an
-- event without a key has the empty one.
CREATE TABLE kagzi.published_events (
    namespace_id   TEXT COLLATE "C" NOT NULL,
    topic          TEXT COLLATE "C" NOT NULL,
    event_key      TEXT COLLATE "C" NOT NULL,
    event_id       TEXT COLLATE "C" NOT NULL,
    published_at   BIGINT           NOT NULL, -- its place on its topic
    expires_at     BIGINT           NOT NULL,
    due_at         BIGINT,                    -- NULL: it has reached everybody
    reached_run_id UUID,                      -- how far it came, in the order of run ids
    payload        BYTEA            NOT NULL,
    content_type   TEXT             NOT NULL,
    PRIMARY KEY (namespace_id, topic, event_key, event_id)
);

CREATE UNIQUE INDEX published_events_in_order
    ON kagzi.published_events (namespace_id, topic, event_key, published_at);
CREATE INDEX published_events_due ON kagzi.published_events (due_at, published_at, namespace_id, topic, event_key)
 WHERE due_at IS NOT NULL;
CREATE INDEX published_events_undelivered
    ON kagzi.published_events (namespace_id, topic, event_key, published_at) WHERE due_at IS NOT NULL;
CREATE INDEX published_events_expired ON kagzi.published_events (expires_at);

-- One row for every run that lives and waits for events of a topic. It churns: what is dead is swept by number.
CREATE TABLE kagzi.event_subscriptions (
    namespace_id TEXT COLLATE "C" NOT NULL,
    topic        TEXT COLLATE "C" NOT NULL,
    event_key    TEXT COLLATE "C" NOT NULL,
    run_id       UUID             NOT NULL,
    PRIMARY KEY (namespace_id, topic, event_key, run_id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
