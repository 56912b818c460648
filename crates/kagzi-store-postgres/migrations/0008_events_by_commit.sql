-- Events as one row per run and commit. What the old table holds is rewritten by the next migration, piece by
-- piece.
DROP INDEX kagzi.events_one_result;
ALTER TABLE kagzi.events RENAME TO events_json;
ALTER INDEX kagzi.events_pkey RENAME TO events_json_pkey;

CREATE TABLE kagzi.events (
    namespace_id TEXT   NOT NULL,
    run_id       UUID   NOT NULL,
    first_seq    BIGINT NOT NULL, -- of the first event in the row
    at           BIGINT NOT NULL, -- of the first event in the row
    kinds        BYTEA  NOT NULL, -- a byte per event: its number in docs/events.md
    detail       BYTEA  NOT NULL, -- format byte 1, then a record each, after its length
    payload      BYTEA,           -- all payloads, one after the other
    -- Histories are linear: two writers with the same view write the same number, and one is refused.
    PRIMARY KEY (namespace_id, run_id, first_seq)
) WITH (
    -- Never updated: nothing dies here until retention deletes. Freeze and analyze now and then.
    fillfactor = 100,
    autovacuum_vacuum_insert_scale_factor = 0.2,
    autovacuum_analyze_scale_factor = 0.05
);
