-- Small nouns of all kinds, each kept and listed by its id; what it says is JSON.

CREATE TABLE kagzi.nouns (
    namespace_id TEXT COLLATE "C" NOT NULL,
    kind         TEXT COLLATE "C" NOT NULL,
    noun_id    TEXT COLLATE "C" NOT NULL,
    version      BIGINT           NOT NULL,
    body         TEXT             NOT NULL, -- JSON
    created_at   BIGINT           NOT NULL,
    updated_at   BIGINT           NOT NULL,
    PRIMARY KEY (namespace_id, kind, noun_id)
);
