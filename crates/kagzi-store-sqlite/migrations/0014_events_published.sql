-- Events that are published on topics, and the runs that wait for them.

-- An event is kept until it has expired and has reached everybody who waited for it. A topic is a name and a key; an
-- event without a key has the empty one.
CREATE TABLE published_events (
    namespace_id   TEXT    NOT NULL,
    topic          TEXT    NOT NULL,
    event_key      TEXT    NOT NULL,
    event_id       TEXT    NOT NULL,
    published_at   INTEGER NOT NULL, -- its place on its topic
    expires_at     INTEGER NOT NULL,
    due_at         INTEGER,          -- NULL: it has reached everybody
    reached_run_id BLOB,             -- how far it came, in the order of run ids
    payload        BLOB    NOT NULL,
    content_type   TEXT    NOT NULL,
    PRIMARY KEY (namespace_id, topic, event_key, event_id)
) STRICT;

CREATE UNIQUE INDEX published_events_in_order ON published_events (namespace_id, topic, event_key, published_at);
CREATE INDEX published_events_due ON published_events (due_at, published_at, namespace_id, topic, event_key)
 WHERE due_at IS NOT NULL;
CREATE INDEX published_events_undelivered ON published_events (namespace_id, topic, event_key, published_at)
 WHERE due_at IS NOT NULL;
CREATE INDEX published_events_expired ON published_events (expires_at);

-- One row for every run that lives and waits for events of a topic.
CREATE TABLE event_subscriptions (
    namespace_id TEXT NOT NULL,
    topic        TEXT NOT NULL,
    event_key    TEXT NOT NULL,
    run_id       BLOB NOT NULL,
    PRIMARY KEY (namespace_id, topic, event_key, run_id)
) STRICT, WITHOUT ROWID;
