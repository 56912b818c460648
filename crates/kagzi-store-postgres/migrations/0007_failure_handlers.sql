-- Workers that registered the namespace's failure handler. Whenever a run fails they are asked for, and a namespace may
-- have ten thousand others: offline ones are kept for a week.
ALTER TABLE kagzi.workers ADD COLUMN handles_failures BOOLEAN NOT NULL DEFAULT false;

UPDATE kagzi.workers
   SET handles_failures = true
 WHERE strpos(workflow_types, '"__kagzi_failure_handler"') > 0;
