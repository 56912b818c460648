-- The server that a worker stands by at. Only that one counts the worker's runs, so only that one may lease more to it.
ALTER TABLE kagzi.workers ADD COLUMN stands_by UUID;
