-- Small nouns of all kinds, each kept and listed by its id; what it says is JSON.

CREATE TABLE nouns (
    namespace_id TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    noun_id    TEXT    NOT NULL,
    version      INTEGER NOT NULL,
    body         TEXT    NOT NULL, -- JSON
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (namespace_id, kind, noun_id)
) STRICT, WITHOUT ROWID;
