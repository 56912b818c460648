-- What may be written here, so that servers of neighbouring versions understand each other. Only migrations
-- raise a level, one release after the one that learned to read what it allows.
CREATE TABLE kagzi.levels (
    name  TEXT     NOT NULL PRIMARY KEY,
    level SMALLINT NOT NULL
);

-- Events up to this level (ADR 32).
INSERT INTO kagzi.levels (name, level) VALUES ('kinds', 1);
