-- Runs of one schedule by their end. One that fires every second has millions: sorting them for a page takes seconds.
-- Only scheduled runs are in it.
CREATE INDEX runs_scheduled_finished ON runs (namespace_id, schedule_id, finished_at, run_id)
 WHERE schedule_id IS NOT NULL AND finished_at IS NOT NULL;
