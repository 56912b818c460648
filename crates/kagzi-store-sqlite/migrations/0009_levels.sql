-- What may be written here, so that servers of neighbouring versions understand each other. Only migrations
-- raise a level, one release after the one that learned to read what it allows.
CREATE TABLE levels (
    name  TEXT    NOT NULL PRIMARY KEY,
    level INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Events up to this level (ADR 32).
INSERT INTO levels (name, level) VALUES ('kinds', 1);
