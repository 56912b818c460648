-- Workers that registered the namespace's failure handler. Whenever a run fails they are asked for, and a namespace may
-- have ten thousand others: offline ones are kept for a week.
ALTER TABLE workers ADD COLUMN handles_failures INTEGER NOT NULL DEFAULT 0;

UPDATE workers
   SET handles_failures = 1
 WHERE instr(workflow_types, '"__kagzi_failure_handler"') > 0;

CREATE INDEX workers_handling ON workers (namespace_id, registered_at, worker_id) WHERE handles_failures = 1;
